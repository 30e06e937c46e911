package configs

import "strings"

// A Class says what a bad value of a key costs.
type Class int

// The classes of keys. The zero Class is none: every key has one of these.
const (
	// Harmless keys decide how something looks or when it happens. A bad value costs
	// itself: the default holds.
	Harmless Class = iota + 1
	// Narrowing keys limit something or somebody: what may be spent, who may write,
	// what agents may do. A default might allow more than was meant, so a bad value
	// switches off what the key belongs to.
	Narrowing
	// Destination keys say where texts, keys, money and files go. A default might
	// send them elsewhere, so a bad value switches off what the key belongs to.
	Destination
)

// closes reports whether a bad value switches off what the key belongs to.
func (c Class) closes() bool { return c >= Narrowing }

// classes has the class of each key, by its path as Keys lists it, and of each
// group of keys by its own.
var classes = map[string]Class{
	"data_dir": Destination, "skills_dir": Harmless, "log": Harmless, "log_level": Harmless,

	"http": Narrowing, "http.addr": Narrowing, "http.tls_cert": Narrowing, "http.tls_key": Narrowing,
	"http.trusted_proxies": Narrowing, "http.insecure": Narrowing, "http_hosts": Narrowing,
	"metrics": Narrowing, "pprof": Narrowing,

	"access": Narrowing, "access.mode": Narrowing, "access.allow": Narrowing, "people": Narrowing, "operators": Narrowing,

	"model": Destination, "model.name": Destination, "model.provider": Destination, "model.base_url": Destination,
	"model.key": Destination, "model.keys": Destination, "model.headers": Destination, "model.system_fallback": Harmless,
	"model.max_tokens": Narrowing, "model.prices": Narrowing, "model.fallback": Destination,
	"model.fallback[].name": Destination, "model.fallback[].provider": Destination, "model.fallback[].base_url": Destination,
	"model.fallback[].key": Destination, "model.fallback[].keys": Destination, "model.fallback[].headers": Destination,
	"model.fallback[].system_fallback": Harmless, "model.fallback[].max_tokens": Narrowing, "model.fallback[].prices": Narrowing,

	"transcription": Destination, "transcription.model": Destination, "transcription.base_url": Destination, "transcription.key": Destination,

	"telegram": Destination, "telegram.token": Destination, "telegram.api_url": Destination,
	"telegram.delivery": Harmless, "telegram.on_ambiguous": Harmless,
	"slack": Destination, "slack.bot_token": Destination, "slack.app_token": Destination, "slack.api_url": Destination, "slack.backfill": Harmless,

	"subagents": Narrowing, "subagents.max_depth": Narrowing, "subagents.max_children": Narrowing, "subagents.max_starts_per_hour": Narrowing,
	"cron": Narrowing, "cron.timezone": Harmless, "cron.gates": Narrowing, "cron.enabled": Narrowing,
	"heartbeat": Narrowing, "heartbeat.every": Narrowing, "heartbeat.active_hours": Narrowing, "heartbeat.timezone": Harmless,
	"heartbeat.max_unattended": Narrowing, "heartbeat.route": Destination, "heartbeat.gates": Narrowing, "heartbeat.enabled": Narrowing,

	"prompts": Harmless, "prompts.strict": Harmless, "prompts.env": Narrowing,

	"budgets": Narrowing, "budgets[].per": Narrowing, "budgets[].every": Narrowing, "budgets[].usd": Narrowing, "budgets[].tokens": Narrowing,
	"budgets[].on_limit": Narrowing, "budgets[].match": Narrowing,

	"web": Narrowing, "web.fetch": Narrowing, "web.private": Narrowing, "web.fetches_per_minute": Narrowing, "web.search": Destination,
	"web.search[].provider": Destination, "web.search[].key": Destination, "web.search[].base_url": Destination,

	"relay": Destination, "relay[].name": Destination, "relay[].url": Destination, "relay[].secret": Destination, "relay[].file": Destination,
	"mcp":  Destination,
	"otlp": Destination, "otlp.endpoint": Destination, "otlp.headers": Destination, "otlp.interval": Harmless,

	"workspaces": Narrowing, "workspaces.provider": Narrowing, "workspaces.image": Narrowing, "workspaces.platform": Narrowing,
	"workspaces.initial_script": Narrowing, "workspaces.env": Narrowing, "workspaces.cpus": Narrowing, "workspaces.memory": Narrowing,
	"workspaces.pids": Narrowing, "workspaces.disk": Narrowing, "workspaces.network": Narrowing, "workspaces.ttl": Narrowing,
	"workspaces.per": Narrowing, "workspaces.user": Narrowing, "workspaces.volumes": Narrowing, "workspaces.runtime": Narrowing,
	"workspaces.docker": Narrowing, "workspaces.kill_on_timeout": Narrowing, "workspaces.unsafe": Narrowing,

	"files": Destination, "files.url": Destination, "files.access_key": Destination, "files.secret_key": Destination,
	"files.session_token": Destination, "files.max_inline": Harmless,
	"storage": Destination, "storage.url": Destination, "storage.copies": Harmless, "storage.check_at": Harmless, "storage.pooler": Harmless, "storage.listen": Harmless, "storage.connections": Harmless,
	"node": Harmless, "node.name": Harmless, "node.lease": Harmless, "node.max_runs": Narrowing, "node.handover": Harmless,

	"agents": Destination, "agents.foreground_scope": Narrowing,
	"agents.default.match": Destination, "agents.default.model": Destination, "agents.default.system_fallback": Harmless,
	"agents.default.context_window": Harmless, "agents.default.prompt": Harmless, "agents.default.max_steps": Narrowing,
	"agents.default.debounceMs": Harmless, "agents.default.debounceMaxMs": Harmless, "agents.default.whenBusy": Harmless,
	"agents.default.processBuffer": Harmless, "agents.default.maxBatch": Harmless, "agents.default.progress": Harmless,
	"agents.default.memory": Harmless, "agents.default.tools": Narrowing, "agents.default.engine": Narrowing,
	"agents.default.approve": Narrowing, "agents.default.confirm": Narrowing, "agents.default.allow": Narrowing,
	"agents.default.dry_run": Narrowing, "agents.default.browser": Narrowing, "agents.default.notes": Narrowing,
	"agents.default.global_notes": Narrowing, "agents.default.skills": Narrowing, "agents.default.workspace": Narrowing,

	"agents.default.approvals": Narrowing, "agents.default.approvals.quorum": Narrowing, "agents.default.approvals.approvers": Narrowing,
	"agents.default.limits": Narrowing, "agents.default.limits.tool_time": Narrowing, "agents.default.limits.tool_output": Narrowing,
	"agents.default.limits.step_calls": Narrowing, "agents.default.limits.run_calls": Narrowing,

	"agents.default.deep": Narrowing, "agents.default.deep.todos": Harmless, "agents.default.deep.show_todos": Harmless,
	"agents.default.deep.files": Narrowing, "agents.default.deep.subagents": Narrowing,
	"agents.default.deep.subagents[].name": Narrowing, "agents.default.deep.subagents[].description": Narrowing,
	"agents.default.deep.subagents[].system_prompt": Narrowing, "agents.default.deep.subagents[].model": Destination,
	"agents.default.deep.subagents[].tools": Narrowing,

	"agents.default.explore": Destination, "agents.default.explore.url": Destination, "agents.default.explore.hosts": Destination,
	"agents.default.explore.goal": Harmless, "agents.default.explore.max_iterations": Narrowing,
	"agents.default.explore.no_progress": Narrowing, "agents.default.explore.screens": Harmless,

	"agents.default.plan": Narrowing, "agents.default.plan.mode": Narrowing, "agents.default.plan.intents": Narrowing,
	"agents.default.plan.tools": Narrowing, "agents.default.plan.deny": Narrowing, "agents.default.plan.scopes": Narrowing,
	"agents.default.plan.quiet_hours": Narrowing, "agents.default.plan.quiet": Narrowing, "agents.default.plan.budget": Narrowing,
	"agents.default.plan.approvals": Narrowing, "agents.default.plan.approvers": Narrowing,
	"agents.default.plan.continue_on_error": Harmless, "agents.default.plan.retries": Harmless, "agents.default.plan.rates": Narrowing,
	"agents.default.plan.intents[].name": Narrowing, "agents.default.plan.intents[].description": Narrowing,
	"agents.default.plan.intents[].tools": Narrowing, "agents.default.plan.intents[].inputs": Narrowing,
	"agents.default.plan.intents[].inputs[].key": Narrowing, "agents.default.plan.intents[].inputs[].text": Narrowing,
	"agents.default.plan.intents[].inputs[].type": Narrowing, "agents.default.plan.intents[].inputs[].options": Narrowing,
	"agents.default.plan.intents[].inputs[].min": Narrowing, "agents.default.plan.intents[].inputs[].max": Narrowing,
	"agents.default.plan.intents[].inputs[].format": Narrowing, "agents.default.plan.intents[].inputs[].placeholder": Narrowing,
	"agents.default.plan.intents[].inputs[].example": Narrowing, "agents.default.plan.intents[].inputs[].default": Narrowing,
	"agents.default.plan.intents[].inputs[].required": Narrowing,
}

// classOf is the class of the key with a path; that of a profile's model or
// workspace is the class of the common one.
func classOf(path string) Class {
	if c, ok := classes[path]; ok {
		return c
	}
	own, ok := strings.CutPrefix(path, profilePath+".")
	switch {
	case path == profilePath:
		return Destination
	case !ok:
	case strings.HasPrefix(own, "model."):
		return classes[own]
	case strings.HasPrefix(own, "workspace."):
		return classes["workspaces."+strings.TrimPrefix(own, "workspace.")]
	}
	return 0
}

// profilePath stands for each profile in a path.
const profilePath = "agents." + DefaultProfile

// lastName is the name of the key with a path.
func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// variablePaths has the path of the key that each variable of the environment sets.
var variablePaths = map[string]string{
	"CLAYBOT_DATA_DIR": "data_dir", "CLAYBOT_HTTP_ADDR": "http.addr", "CLAYBOT_HTTP_HOSTS": "http_hosts",
	"CLAYBOT_HTTP_TLS_CERT": "http.tls_cert", "CLAYBOT_HTTP_TLS_KEY": "http.tls_key", "CLAYBOT_HTTP_PROXIES": "http.trusted_proxies",
	"CLAYBOT_HTTP_INSECURE": "http.insecure", "CLAYBOT_ACCESS": "access.mode", "CLAYBOT_ALLOW": "access.allow",
	"CLAYBOT_LOG": "log", "CLAYBOT_LOG_LEVEL": "log_level", "CLAYBOT_MODEL": "model.name",
	"OPENAI_API_KEY": "model.key", "OPENAI_BASE_URL": "model.base_url", "ANTHROPIC_API_KEY": "model.key",
	"TELEGRAM_BOT_TOKEN": "telegram.token", "TELEGRAM_API_URL": "telegram.api_url",
	"SLACK_BOT_TOKEN": "slack.bot_token", "SLACK_APP_TOKEN": "slack.app_token", "SLACK_API_URL": "slack.api_url",
	"CLAYBOT_PPROF": "pprof", "OTEL_EXPORTER_OTLP_ENDPOINT": "otlp.endpoint", "OTEL_EXPORTER_OTLP_HEADERS": "otlp.headers",
	"CLAYBOT_FILES_URL": "files.url", "AWS_ACCESS_KEY_ID": "files.access_key", "AWS_SECRET_ACCESS_KEY": "files.secret_key", "AWS_SESSION_TOKEN": "files.session_token",
	"CLAYBOT_STORAGE_URL": "storage.url", "CLAYBOT_STORAGE_POOLER": "storage.pooler", "CLAYBOT_STORAGE_LISTEN": "storage.listen",
	"CLAYBOT_NODE_NAME": "node.name", "CLAYBOT_NODE_LEASE": "node.lease", "CLAYBOT_NODE_MAX_RUNS": "node.max_runs", "CLAYBOT_NODE_HANDOVER": "node.handover",
}
