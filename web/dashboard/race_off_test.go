//go:build !race

package dashboard

const raced = false
