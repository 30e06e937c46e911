// The same with a client of TypeScript.
import createClient from "openapi-fetch";
import type { components, paths } from "./claybot";

declare const process: { argv: string[]; env: Record<string, string> };
const [url, text] = process.argv.slice(2);
const c = createClient<paths>({ baseUrl: url, headers: { Authorization: "Bearer " + process.env.CLAYBOT_TOKEN } });
const started = await c.POST("/agents/runs", { body: { text, descriptor: { channelId: "ts" } } });
if (!started.data) throw new Error(JSON.stringify(started.error.error.message));
for (;;) {
  const out = await c.GET("/agents/runs/{run}/output", { params: { path: { run: started.data.runId } } });
  if (!out.data) throw new Error(JSON.stringify(out.error));
  if (out.data.state === "SUCCEEDED") {
    console.log(out.data.state, out.data.output);
    break;
  }
  await new Promise((go) => setTimeout(go, 50));
}

// The kind of an event decides what its data is.
export function told(e: components["schemas"]["WireEvent"]): string {
  return e.type === "RunFailed" ? e.data.code : e.type;
}
