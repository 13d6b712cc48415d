/** Runs that tests of the page start over the API: scripted, so that each is the same every time. */
import { type Json, type ServerProgram, startServer } from "../e2e/program.ts";

/** Starts a server without keys, whose plans may have tools of their own in their text. */
export function startPageServer(args: readonly string[] = []): Promise<ServerProgram> {
  return startServer(["--no-auth", ...args], {
    env: {
      PREAMP_MODULES_ALLOW: "data:",
      PREAMP_MODULES_INLINE: "data:",
      PREAMP_LIMITS_MAX_TOOL_OUTPUT_BYTES: "20000000",
    },
  });
}

/** A plan that asks a person before its tool call; the answer has many deltas. */
export const ASKING = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: [{
    module: "provider-mock",
    config: {
      chunk_chars: 1,
      responses: [
        { tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }] },
        { text: "6 × 7 is 42." },
      ],
    },
  }],
  tools: ["tool-calculator"],
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
};

/** Returns a plan whose model answers by a script, with further keys. */
export function scripted(responses: readonly unknown[], more: Record<string, unknown> = {}): Json {
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses } }],
    ...more,
  };
}

/** Returns a module entry: a tool `say` whose result is the value of a JavaScript expression. */
export function saying(expression: string): Json {
  const code =
    `export const module = { id: "tool-say", type: "tool", version: "1.0.0", description: "Says." };
    export const mount = (coordinator) => coordinator.mount("tools", {
      name: "say", description: "Says something.", input_schema: { type: "object" },
      execute: () => ({ success: true, output: ${expression} }),
    });`;
  return { module: "tool-say", source: `data:text/javascript,${encodeURIComponent(code)}` };
}

/** A model's answer that calls the tool of {@link saying}. */
export const SAY: Json = { tool_calls: [{ name: "say", arguments: { to: "you" } }] };

/** Starts a run, and resolves to its id. */
export async function startRun(server: ServerProgram, plan: Json, prompt = "Begin"): Promise<string> {
  const { status, body } = await server.post("/v1/runs", { plan, prompt, background: true });
  if (status >= 300) throw new Error(JSON.stringify(body));
  return body.id;
}

/** Resolves to a run once it has a status. */
export async function runWith(server: ServerProgram, id: string, wanted: string): Promise<Json> {
  for (let tries = 0;; tries++) {
    const { body } = await server.get(`/v1/runs/${id}`);
    if (body.status === wanted) return body;
    if (tries > 1_500) throw new Error(`Run ${id} must be ${wanted}: it is ${JSON.stringify(body)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
