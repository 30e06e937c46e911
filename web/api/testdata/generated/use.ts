// The same with a client of TypeScript.
import createClient from "openapi-fetch";
import type { components, paths } from "./claybot";

declare const process: { argv: string[]; env: Record<string, string> };
const [url, text, key] = process.argv.slice(2);
const c = createClient<paths>({ baseUrl: url, headers: { Authorization: "Bearer " + process.env.CLAYBOT_TOKEN } });
const end = Date.now() + 60_000;

// again makes a request until claybot has answered it.
async function again<T extends { response: Response }>(request: (signal: AbortSignal) => Promise<T>): Promise<T> {
  for (;;) {
    try {
      const got = await request(AbortSignal.timeout(3000));
      if (got.response.status !== 429 && got.response.status < 500) return got;
    } catch {
      // no answer, or half of one
    }
    if (Date.now() > end) throw new Error("no answer in a minute");
    await new Promise((go) => setTimeout(go, 100));
  }
}

const started = await again((signal) =>
  c.POST("/agents/runs", { signal, params: { header: { "Idempotency-Key": key } }, body: { text, descriptor: { channelId: key } } }),
);
if (!started.data) throw new Error(JSON.stringify(started.error.error.message));
const run = started.data.runId;
for (;;) {
  const out = await again((signal) => c.GET("/agents/runs/{run}/output", { signal, params: { path: { run } } }));
  if (!out.data) throw new Error(JSON.stringify(out.error));
  if (out.data.state === "SUCCEEDED" || out.data.state === "FAILED") {
    console.log(out.data.state, out.data.error?.text ?? out.data.output);
    break;
  }
  await new Promise((go) => setTimeout(go, 50));
}

// The kind of an event decides what its data is.
export function told(e: components["schemas"]["WireEvent"]): string {
  return e.type === "RunFailed" ? e.data.code : e.type;
}
