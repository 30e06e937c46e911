package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/claybot/claybot/service"
)

type serviceCmd struct {
	User      bool                `help:"Use the service manager of this user. Default: that of the machine for root, else this."`
	Install   serviceInstallCmd   `cmd:"" eg:"service install\nservice install --print" help:"Run claybot as a service of systemd or launchd, now and after each start of the machine."`
	Uninstall serviceUninstallCmd `cmd:"" eg:"service uninstall" help:"Stop the service and remove it; all data stays."`
	Start     serviceStartCmd     `cmd:"" eg:"service start" help:"Start the service."`
	Stop      serviceStopCmd      `cmd:"" eg:"service stop" help:"Stop the service."`
	Restart   serviceRestartCmd   `cmd:"" eg:"service restart" help:"Restart the service."`
	Status    serviceStatusCmd    `cmd:"" eg:"service status" help:"Show what the service manager knows of the service."`
	Logs      serviceLogsCmd      `cmd:"" eg:"service logs -f" help:"Show the log of the service."`
}

// managed does something with the service manager that the flags select.
func (c serviceCmd) managed(e *env, do func(context.Context, *service.Manager) error) error {
	ctx, stop := interruptible()
	defer stop()
	m, err := service.New(!c.User && os.Geteuid() == 0, e.out, e.err)
	if err == nil {
		err = do(ctx, m)
	}
	if errors.Is(err, service.ErrNotInstalled) {
		return fmt.Errorf("%w; install one with: claybot service install", err)
	}
	return err
}

type serviceUninstallCmd struct{}

// Run stops and removes the service.
func (serviceUninstallCmd) Run(e *env) error {
	return e.Service.managed(e, func(ctx context.Context, m *service.Manager) error {
		kept, err := m.Uninstall(ctx)
		if err != nil {
			return err
		}
		text := "Removed the service.\n"
		if kept != "" {
			text += "Its variables, which may be secrets, are still in " + kept + "\n"
		}
		return e.text(text)
	})
}

type serviceStartCmd struct{}

// Run starts the service.
func (serviceStartCmd) Run(e *env) error {
	return e.Service.managed(e, func(ctx context.Context, m *service.Manager) error { return m.Start(ctx) })
}

type serviceStopCmd struct{}

// Run stops the service.
func (serviceStopCmd) Run(e *env) error {
	return e.Service.managed(e, func(ctx context.Context, m *service.Manager) error { return m.Stop(ctx) })
}

type serviceRestartCmd struct{}

// Run restarts the service.
func (serviceRestartCmd) Run(e *env) error {
	return e.Service.managed(e, func(ctx context.Context, m *service.Manager) error { return m.Restart(ctx) })
}

type serviceStatusCmd struct{}

// Run prints what the manager says. It fails unless the service runs.
func (serviceStatusCmd) Run(e *env) error {
	return e.Service.managed(e, func(ctx context.Context, m *service.Manager) error {
		if err := m.Status(ctx); err != nil && !errors.Is(err, service.ErrNotInstalled) {
			return errSilent // the manager has said it
		} else if err != nil {
			return err
		}
		return nil
	})
}

type serviceLogsCmd struct {
	Follow bool `short:"f" help:"Print new lines as they come, until Ctrl-C."`
	Lines  int  `short:"n" default:"100" placeholder:"N" help:"Number of lines to begin with. Default: 100."`
}

// Run prints the log of the service.
func (c serviceLogsCmd) Run(e *env) error {
	if c.Lines < 0 {
		return usageError{errors.New("--lines: want 0 or more")}
	}
	return e.Service.managed(e, func(ctx context.Context, m *service.Manager) error {
		config, _, err := e.load()
		if err != nil {
			return err
		}
		return m.Logs(ctx, c.Lines, c.Follow, service.Service{Data: config.DataDir}.LaunchdLog())
	})
}
