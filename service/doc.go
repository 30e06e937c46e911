// Package service writes what a service manager needs to run claybot: a unit of systemd
// or an agent of launchd, and the file of the variables that it gets. It also tells
// systemd when the daemon is ready.
package service
