// etcd as it comes from the Go module proxy, to be measured beside a cluster of ours.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
