package docker

// The protections that an operator can give up, each by its name in Spec.Unsafe.
// Each loosens one line of what every container has. The engine's socket, the
// namespaces and folders of the host, and the volumes of other workspaces cannot
// be had by any name.
const (
	// UnsafeRoot allows a User of 0. Root has no capabilities even so.
	UnsafeRoot = "root"
	// UnsafeCapabilities leaves the capabilities that the engine gives by default.
	UnsafeCapabilities = "capabilities"
	// UnsafePrivileges lets programs gain rights when they start, as sudo does.
	UnsafePrivileges = "new-privileges"
	// UnsafeWritable makes the whole file system of the container writable, which
	// the limit of space does not cover.
	UnsafeWritable = "writable-root"
	// UnsafeExecutable lets programs run from /tmp.
	UnsafeExecutable = "exec-tmp"
	// UnsafeSeccomp allows all system calls.
	UnsafeSeccomp = "seccomp"
	// UnsafeDocker allows Spec.Docker: a privileged container beside the
	// workspace, whose user is as good as root on the machine.
	UnsafeDocker = "docker"
)

// Unsafe has all names that Spec.Unsafe may hold, in the order of the alphabet.
func Unsafe() []string {
	return []string{
		UnsafeCapabilities, UnsafeDocker, UnsafeExecutable, UnsafePrivileges, UnsafeRoot, UnsafeSeccomp, UnsafeWritable,
	}
}
