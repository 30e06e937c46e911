package claybot

// An Audience is who can read a conversation, and what an agent of it may show without
// asking: its owner, or everybody in a place. The zero Audience is that of agents without
// an owner: the operators.
type Audience struct {
	// Owner is the person whose agent it is, in the form of Descriptor.OwnerID.
	Owner string
	// Place is where others read as well, as "connector/channelId"; empty: only the owner
	// does.
	Place string
}

// Everybody is the audience of what all agents read, such as global notes.
var Everybody = Audience{Place: "*"}
