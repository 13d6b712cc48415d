/** Events that a module emits in the place of another: they change neither the run object nor its replay. */
import { CANONICAL_EVENTS } from "../../src/sdk/event_table.ts";
import type { Run } from "../../src/runs/types.ts";
import type { Coordinator, JsonObject } from "../../src/sdk/types.ts";
import { assert, assertEquals } from "../assert.ts";
import { replayed } from "../support/runs.ts";
import { type TestModule, tool } from "../support/sessions.ts";
import { mock, play } from "./play.ts";

/** Ids of the loop's call and request, as a handler of its events reads them. */
type Ids = { call?: unknown; request?: unknown };

/** Returns the data of an event as a module makes it that takes the place of its emitter. */
function forgeries(event: string, { call = "call_0", request }: Ids): JsonObject[] {
  const of_call = { tool_name: "work", tool_call_id: call, tool_input: { n: 9 } };
  const of_another = { ...of_call, tool_call_id: "call_9" };
  const result = { success: true, output: "forged", error: null };
  const error = { type: "RangeError", msg: "forged" };
  const agent = { agent: "a", sub_session_id: "ses_9", parent_session_id: "ses_1" };
  const usage = { input_tokens: 7, output_tokens: 7, total_tokens: 14 };
  const response = { content: [{ type: "text", text: "forged" }] };
  const provider = "mock";
  switch (event) {
    case "tool:pre":
      return [of_call, of_another];
    case "tool:post":
      return [of_call, of_another, { tool_name: "work" }, {}].map((facts) => ({ ...facts, result }));
    case "tool:error":
      return [of_call, of_another, {}].map((facts) => ({ ...facts, error }));
    case "provider:response":
      return [{ provider, usage, response }, { provider, usage, response, inner: true }];
    case "provider:retry":
      return [{ provider, attempt: 1 }, { provider, attempt: 1, request_id: request }];
    case "llm:stream_aborted":
      return [{ request_id: "own", error }, { request_id: request, error }];
    case "user:notification":
      return [{ message: "hi", level: "info" }, { message: "hi", level: "info", source: "loop-streaming" }];
    case "policy:violation":
      return [{ kind: "own" }, { kind: "injection_size", limit: 1, actual: 2 }];
    case "context:compaction":
      return [{ strategy_level: 3 }];
    case "task:agent_spawned":
    case "task:agent_completed":
      return [{ ...agent, status: "completed" }];
    default:
      return [{ provider, request_id: request }];
  }
}

async function forgeAll({ hooks }: Coordinator, ids: Ids): Promise<void> {
  for (const event of CANONICAL_EVENTS) {
    for (const data of forgeries(event, ids)) await hooks.emit(event, data);
  }
}

/** Runs a plan in which a module acts at `place`: a hook at this event, or the `tool`. */
async function runWith(place: string, act: (coordinator: Coordinator, ids: Ids) => Promise<void>) {
  const ids: Ids = {};
  const hook: TestModule = (coordinator) => {
    const { hooks } = coordinator;
    hooks.register("content_block:start", (_, { request_id }) => void (ids.request = request_id));
    hooks.register("provider:response", (_, { response }) => {
      const { tool_calls } = response as { tool_calls?: { id: string }[] };
      ids.call = tool_calls?.[0]?.id;
    });
    let acted = false;
    hooks.register(place, async () => {
      if (acted) return null;
      acted = true; // it emits the event that it handles
      await act(coordinator, ids);
      return null;
    });
  };
  const works: TestModule = async (coordinator) =>
    await coordinator.mount(
      "tools",
      tool("work", async () => {
        if (place === "tool") await act(coordinator, ids);
        return "worked";
      }),
    );
  const { service, run, entries } = await play({
    plan: {
      providers: [
        mock({ text: "let me see", tool_calls: [{ name: "work", arguments: { n: 1 } }] }, {
          error: { type: "RateLimitError", message: "slow down", status_code: 429 },
        }, "done"),
      ],
      tools: [works],
      hooks: [hook],
    },
  });
  return { service, run, entries };
}

const PLACES = [
  ...["session:start", "execution:start", "prompt:submit", "provider:request", "content_block:start"],
  ...["content_block:end", "provider:response", "tool:pre", "tool", "tool:post", "provider:retry"],
  ...["prompt:complete", "execution:end", "orchestrator:complete", "session:end"],
];

function countsOf({ status, output_text, turn_count, tool_call_count, usage, context, error }: Run) {
  return { status, output_text, turn_count, tool_call_count, usage, compactions: context.compactions, error };
}

for (const place of PLACES) {
  Deno.test(`events that a module emits in the place of others change neither the run nor its replay: ${place}`, async () => {
    const honest = await runWith(place, () => Promise.resolve());
    const forged = await runWith(place, forgeAll);
    assert(forged.entries.length > honest.entries.length);
    assertEquals(countsOf(forged.run), countsOf(honest.run));
    assertEquals(await replayed(forged.service, forged.run.id), { equal: true });
  });
}
