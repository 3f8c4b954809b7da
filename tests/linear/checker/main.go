// Says of each history whether it is one of a list that only grows: one operation after the other,
// each between the moment it was asked and the moment it was answered.
//
// In: a history a line, as JSON. Out: a verdict a line: Ok, Illegal, or Unknown when time ran out.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	lineBytesMax = 64 << 20
	historyTime  = 60 * time.Second
)

// operation is an append where it has an item, else a read.
type operation struct {
	List   string  `json:"list"`
	Item   *string `json:"item"`
	Asked  int64   `json:"asked"`
	Ended  *int64  `json:"ended"`  // nil: never answered, it may have happened at any time since
	Count  int     `json:"count"`  // of items before an append, of all items that a read saw
	Digest string  `json:"digest"` // of what a read saw
}

type list struct {
	count  int
	digest [sha256.Size]byte
}

func (l list) with(item string) list {
	return list{l.count + 1, sha256.Sum256(append(l.digest[:], item...))}
}

func (l list) after(op operation) (bool, list) {
	if op.Item != nil {
		return op.Count == l.count, l.with(*op.Item)
	}
	return op.Count == l.count && op.Digest == hex.EncodeToString(l.digest[:]), l
}

func byList(history []porcupine.Operation) [][]porcupine.Operation {
	places := map[string]int{}
	var parts [][]porcupine.Operation
	for _, one := range history {
		name := one.Input.(operation).List
		at, known := places[name]
		if !known {
			at = len(parts)
			places[name] = at
			parts = append(parts, nil)
		}
		parts[at] = append(parts[at], one)
	}
	return parts
}

var growingList = porcupine.Model{
	Partition: byList,
	Init:      func() interface{} { return list{} },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		fits, next := state.(list).after(input.(operation))
		return fits, next
	},
}

func verdict(operations []operation) porcupine.CheckResult {
	history := make([]porcupine.Operation, len(operations))
	for at, op := range operations {
		ended := int64(math.MaxInt64)
		if op.Ended != nil {
			ended = *op.Ended
		}
		history[at] = porcupine.Operation{Input: op, Call: op.Asked, Return: ended}
	}
	return porcupine.CheckOperationsTimeout(growingList, history, historyTime)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		var operations []operation
		if err := json.Unmarshal(lines.Bytes(), &operations); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(verdict(operations))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
