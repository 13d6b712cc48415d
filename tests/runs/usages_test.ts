/** Usage of a session's requests is stored until the next compaction and given to the next run's context. */
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller } from "../../src/runs/types.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import { assert, assertEquals } from "../assert.ts";
import { storedSession } from "../support/runs.ts";

const CALLER: Caller = { name: "library", namespace: "test", origin: "operator" };

Deno.test("a session stores its usages until a compaction, whose state replaces them", async () => {
  const store = new MemoryStore();
  const responses = Array.from(
    { length: 8 },
    (_, index) => ({ text: `answer ${index}: ${"word ".repeat(900)}` }),
  );
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{
      module: "provider-mock",
      config: { responses, context_window: 8000, max_output_tokens: 500 },
    }],
  };
  let session_id: string | undefined;
  let expected: { messages: number; input_tokens: number }[] = [];
  let compactions = 0;
  for (let turn = 0; turn < 8; turn++) {
    const runtime = createRuntime({ policy: defaultPolicy(), store });
    const request = session_id === undefined ? { plan } : { session_id };
    const handle = await runtime.runs.create({ prompt: `question ${turn}`, ...request }, CALLER);
    const run = await handle.settled("end");
    session_id = handle.session_id;
    compactions += run.context.compactions;
    if (run.context.compactions > 0) expected = [];
    expected.push({ messages: turn * 2 + 1, input_tokens: run.usage.input_tokens });
    assertEquals((await storedSession(store, session_id, CALLER)).usages, expected, `turn ${turn}`);
  }
  assert(compactions > 0);
});

Deno.test("the stored usage of a request includes its cache writes", async () => {
  const store = new MemoryStore();
  const usage = { input_tokens: 40, cache_read_tokens: 30, cache_write_tokens: 2000, output_tokens: 3 };
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses: [{ text: "Hello", usage }] } }],
  };
  const runtime = createRuntime({ policy: defaultPolicy(), store });
  const handle = await runtime.runs.create({ prompt: "Hi", plan }, CALLER);
  const run = await handle.settled("end");
  assertEquals((await storedSession(store, handle.session_id, CALLER)).usages, [{
    messages: 1,
    input_tokens: 2040,
  }]);
  assertEquals(run.usage.total_tokens, 2043);
});
