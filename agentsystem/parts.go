package agentsystem

import (
	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/worker"
)

// assemble makes the parts of the system, each on those before it.
func (s *AgentSystem) assemble() {
	gate := people.NewGate(s.Config.Access, s.Admission)
	s.deliverer = delivery.New(delivery.Config{
		Outbox: s.Outbox, Files: s.Agents, Members: s.Members, Connector: s.connector, Allowed: gate.MayReceive, Meter: s.Meter, Log: s.Log,
	})
	s.People = s.newPeople(gate)
	s.Profiles = s.newProfiles()
	s.Questions = s.newQuestions()
	s.Subagents = s.newSubagents()
	s.Worker = s.newWorker()
	s.Overview = s.newOverview()
}

func (s *AgentSystem) newPeople(gate *people.Gate) *people.Directory {
	return people.New(people.Config{
		Gate: gate, Index: s.Index, Receipts: s.Inbox, Agents: s.lookup, Sender: s.deliverer,
		Identities: func(owner string) []string {
			if all := s.Society().Identities; all != nil {
				return all(owner)
			}
			return nil
		},
		AllOwners: func() bool { return s.Society().AllOwners }, Operators: s.Operators, Log: s.Log,
	})
}

func (s *AgentSystem) newProfiles() *profiles.Profiles {
	return profiles.New(profiles.Config{
		Index: s.Index, Agents: s.Agents, Profile: s.Profile, Models: s.Models, Tools: s.Tools, Engines: func() []string { return s.Worker.Engines() },
		CheckPrompt: s.CheckPrompt, Refresh: s.refresh, Changed: s.rescheduled, Log: s.Log,
	})
}

func (s *AgentSystem) newQuestions() *questions.Questions {
	return questions.New(questions.Config{
		Asked: s.Asked, Agents: s.Agents, Lookup: s.lookup, Index: s.Index, Runs: s.Runs, Receipts: s.Inbox, Outbox: s.Outbox,
		Inbox: s.boxes, Sender: s.deliverer, People: s.People, Work: &s.turns,
		Intake: questions.Intake{Complete: s.complete, Accepted: s.accepted, CarryOut: s.carryOut},
		Zone:   s.zone, CheckEdit: s.CheckEdit, Log: s.Log,
	})
}

func (s *AgentSystem) newSubagents() *subagents.Subagents {
	return subagents.New(subagents.Config{
		Agents: s.Agents, Index: s.Index, Inbox: s.Inbox, Runs: s.Runs, Later: s.Later, Poster: s.boxes,
		Intake: subagents.Intake{
			Accept: s.acceptFor, Complete: s.complete,
			Dropped: func(agent claybot.AgentID, ids ...claybot.MessageID) { s.reject(agent, inbox.ErrDropped, ids...) },
		},
		People: s.People, Work: &s.turns, Clock: s.Members, Limits: s.Society,
		Profile: func(d claybot.Descriptor) string { return s.Profile(d).Name }, Log: s.Log,
	})
}

func (s *AgentSystem) newWorker() *worker.Worker {
	return worker.New(worker.Config{
		Stores: worker.Stores{
			Agents: s.Agents, Histories: s.Agents, Files: s.Agents, Index: s.Index, Leases: s.Inbox, Receipts: s.Inbox,
			Runs: s.Runs, Reader: s.Runs, Outbox: s.Outbox, Texts: s.Texts, Counts: s.Counts, Marks: s.Marks, Boots: s.Boots,
		},
		Parts: worker.Parts{
			Boxes: s.boxes, Waiters: &s.waiters, Deliverer: s.deliverer, People: s.People, Profiles: s.Profiles, Questions: s.Questions,
			Subagents: s.Subagents, Hub: s.Hub, AtWork: &s.turns, Connector: s.connector, Complete: s.complete, DropDoomed: s.dropDoomed,
			First: s.shows,
		},
		Members: s.Members, Meter: s.Meter, Transcribe: s.Transcribe, Log: s.Log,
	})
}

func (s *AgentSystem) newOverview() *overview.Overview {
	return overview.New(overview.Config{
		Stores: overview.Stores{
			Index: s.Index, Agents: s.Agents, Inbox: s.Inbox, Runs: s.Runs, Outbox: s.Outbox, Parking: s.Parking,
			Later: s.Later, Counts: s.Counts,
		},
		Parts:      overview.Parts{People: s.People, Profiles: s.Profiles, Questions: s.Questions, Subagents: s.Subagents},
		Connectors: ways{s}, Health: health{s}, Work: work{s}, Reports: s.Reports,
		Membership: s.Members, Hub: s.Hub, Access: s.Admission, Zone: s.zone, Version: s.Version, Log: s.Log,
	})
}
