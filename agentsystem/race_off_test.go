//go:build !race

package agentsystem_test

const raced = false
