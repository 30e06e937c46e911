//go:build race

package main

// raced says that the race detector is on, with which a start of claybot takes
// four times as long.
const raced = true
