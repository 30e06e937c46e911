# `make` lists the targets. GOFLAGS, ADDR and the variables of the program
# itself (CLAYBOT_*, OPENAI_*, TELEGRAM_*, SLACK_*) are taken from outside.
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LINT     := 2.15.0
FUZZTIME ?= 10s
N        ?= 50
T        ?= 0
PUSHED   ?= false
F        ?= 500
S        ?= 10000
L        ?= 10000
W        ?= 1000
# SQLite is C that was turned into Go, locked by its own rules: the race detector
# has nothing to find in it, nor in its memory and its driver, and takes four times as long.
norace   = -gcflags=modernc.org/$(1)=-race=false
RACE     := -race $(foreach p,sqlite sqlite/lib libc memory,$(call norace,$(p)))

.DEFAULT_GOAL := help
.PHONY: help build release image image-test service-test run demo test size unit race lint clients ten-minutes fuzz crash crash-loop crash-nodes leaks lifecycle flows faults bad-values isolation fresh bench bench-watch bench-nodes bench-growing bench-year vuln clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build one static binary, bin/claybot
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/claybot ./cmd/claybot

release: ## build what is published into dist: archives, packages, modules and checksums, the same bytes each time
	go run ./cmd/release -version $(VERSION)

image: ## build the image of one node, claybot
	docker build -t claybot --build-arg VERSION=$(VERSION) .

image-test: ## build the image on base images made here, and try a container of it
	./scripts/docker.sh
	./scripts/image.sh

service-test: build ## install, kill and remove the service under a real systemd in a container; needs Docker and systemd
	./scripts/docker.sh
	./scripts/service.sh

run: build ## build and start the daemon: web chat and terminal, a demo model without a key
	./bin/claybot serve

demo: build ## watch a scripted conversation on emulated platforms, no accounts
	./bin/claybot demo

test: ## all tests with the race detector, after installing what they need
	./scripts/setup.sh
	./scripts/test.sh $$(command -v cc >/dev/null && echo $(RACE)) -vet=off -shuffle=on -timeout 40m

size: ## lines by kind, packages, widest interfaces, largest structs, branches for a shared store
	@go test -count=1 -run TestSize -v . | grep -v '^[=-]\|^ok\|^PASS'

unit: ## the tests without the race detector and the rigs of claybench, in a few minutes
	go test -short -vet=off -shuffle=on $$(go list ./... | grep -v /claybench$$)

race: ## the tests three times with the race detector, in other orders
	go test $(RACE) -shuffle=on -count=3 ./...

clients: ## try the official OpenAI and MCP clients at their defaults, and generated ones, against the API
	./scripts/clients.sh
	CI=true go test -count=1 -v -run 'TestOfficialClients|TestGeneratedClients' ./web/api
	CI=true go test -count=1 -v -run TestOfficialMCPClient ./cmd/claybot

ten-minutes: ## let the official MCP SDK at its defaults wait for a run of ten minutes
	./scripts/clients.sh
	CI=true CLAYBOT_TEST_TEN_MINUTES=1 go test -count=1 -timeout 20m -v -run TestOfficialMCPClient ./cmd/claybot

lint: bin/golangci-lint ## vet and the other linters of .golangci.yml, and a go.mod that is tidy
	go mod tidy -diff
	./bin/golangci-lint run ./...

fuzz: ## each fuzz target for FUZZTIME (10s)
	./scripts/fuzz.sh $(FUZZTIME)

crash: ## kill the real binary N times (50) under load, in T threads (0) on each platform, PUSHED=true over HTTP, and count what was lost
	go run ./cmd/claybench -crash $(N) -threads $(T) -pushed=$(PUSHED)

faults: ## let one system call go wrong in each of F lives (500) of the daemon, and count what was lost
	go run ./cmd/claybench -faults $(F)

bad-values: ## give the daemon every bad value by file, reload and environment, and watch which hosts it calls; about a minute
	CLAYBOT_TEST_ALL_ROWS=1 go test ./cmd/claybot -count=1 -run 'TestBadValuesReachNoHost|TestBadLimitsByTheAPI'

crash-loop: ## let the real binary die in a row: kills, a message that kills it, 72 MiB with 4,000 in flight (root); about 10 minutes
	go run ./cmd/claybench -crash-loop

leaks: ## let people tell secrets to agents that pass on all they know, in S sequences (10000), and kill the daemon meanwhile; about 20 minutes
	go run ./cmd/claybench -leaks $(S)

lifecycle: ## start, stop and configure nodes with L random calls (10000) at once, with kills, while people write
	go run ./cmd/claybench -lifecycle $(L)

flows: ## kill one run of a workflow at ten nodes, measure W runs (1000), kill the daemon while each delivery is sent three times, and let 10 W wait
	go run ./cmd/claybench -flows $(W) -kills 10

crash-nodes: ## strike three nodes over one PostgreSQL 370 times under load and count what was lost; about an hour
	go run ./cmd/claybench -crash-nodes

isolation: ## measure how long others wait while the files of one agent are faulty; about 11 minutes
	go run ./cmd/claybench -isolation 14s

bench: ## measure the real binary against bare loops; writes docs/BENCHMARKS.md
	go run ./cmd/claybench

bench-watch: ## measure runs with 200 readers, the pages with 100,000 runs, and 50 kills with readers and relays
	go run ./cmd/claybench -watch

bench-growing: ## measure many answers that grow at once on Slack and on Telegram
	go run ./cmd/claybench -growing

bench-nodes: ## measure one node and three over PostgreSQL against one over SQLite
	go run ./cmd/claybench -bench-nodes

bench-year: ## let a store of each kind live for a year at N messages a day
	go test -vet=off -timeout 2h ./storage/sqlite ./storage/postgres -run TestYear -v -year $(N)

fresh: ## run the README's two commands on a bare Debian in a root file system of its own (root); about an hour
	./scripts/fresh.sh

vuln: ## known vulnerabilities in what is used
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

clean: ## remove what was built
	rm -rf bin dist

bin/golangci-lint:
	GOBIN=$(CURDIR)/bin GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINT)
