// NATS as it comes from the Go module proxy, to be measured beside a cluster of ours.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	flags := flag.NewFlagSet("nats", flag.ExitOnError)
	none := func() {}
	options, err := server.ConfigureOptions(flags, os.Args[1:], none, none, none)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	running, err := server.NewServer(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := server.Run(running); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	running.WaitForShutdown()
}
