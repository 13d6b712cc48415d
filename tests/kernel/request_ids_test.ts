/** Ids of model calls in their events: each call has its own, whatever runs beside it. */
import type { JsonObject, Orchestrator, Provider } from "../../src/sdk/types.ts";
import { TestCoordinator } from "../../src/testing/coordinator.ts";
import { withRequestId } from "../../src/sdk/request_ids.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { kit } from "../support/sessions.ts";

/** Returns the ids of entries as `id1`, `id2` in their order. */
function named(entries: readonly { event: string; data: JsonObject }[]): [string, string | null][] {
  const names = new Map<unknown, string>();
  return entries.map(({ event, data: { request_id: id } }) => {
    if (id === undefined) return [event, null];
    if (!names.has(id)) names.set(id, `id${names.size + 1}`);
    return [event, names.get(id)!];
  });
}

const MODEL_EVENTS = /^llm:|^provider:(error|retry|throttle)$/;

/** A provider that emits these events, one after the other, and then fails or answers. */
function emitting(events: readonly [string, JsonObject?][], fails = false): KitProvider {
  return async (coordinator) => {
    const provider: Provider = {
      name: "mock",
      getInfo: () => ({ id: "mock", display_name: "m", defaults: {} }) as never,
      listModels: () => Promise.resolve([]),
      parseToolCalls: () => [],
      async complete() {
        for (const [event, data] of events) {
          await coordinator.hooks.emit(event, { provider: "mock", ...data });
        }
        if (fails) throw new Error("It broke");
        return { content: [{ type: "text", text: "done" }] };
      },
    };
    await coordinator.mount("providers", provider);
  };
}

type KitProvider = NonNullable<NonNullable<Parameters<typeof kit>[0]>["providers"]>[number];

async function emitted(provider: KitProvider) {
  const { run, entries } = kit({ providers: [provider], loop: { max_retries: 0 } });
  await run();
  return named(entries.filter(({ event }) => MODEL_EVENTS.test(event)));
}

Deno.test("llm:request gets an id, which the events of the call have up to its end", async () => {
  const events = await emitted(emitting([
    ["provider:throttle"],
    ["llm:request"],
    ["provider:retry"],
    ["llm:response"],
    ["provider:retry"],
    ["llm:request"],
    ["llm:response"],
  ]));
  assertEquals(events, [
    ["provider:throttle", null],
    ["llm:request", "id1"],
    ["provider:retry", "id1"],
    ["llm:response", "id1"],
    ["provider:retry", null],
    ["llm:request", "id2"],
    ["llm:response", "id2"],
  ]);
});

Deno.test("an id that the provider states stays, and belongs to the call", async () => {
  const { run, data } = kit({
    providers: [emitting([["llm:request", { request_id: "mine" }], ["llm:response"]])],
  });
  await run();
  assertEquals([data("llm:request")[0]?.request_id, data("llm:response")[0]?.request_id], ["mine", "mine"]);
});

Deno.test("the loop's provider:error ends a call that its provider left open, and no other", async () => {
  assertEquals(await emitted(emitting([["llm:request"]], true)), [["llm:request", "id1"], [
    "provider:error",
    "id1",
  ]]);
  assertEquals(await emitted(emitting([["llm:request"], ["llm:response"]], true)), [
    ["llm:request", "id1"],
    ["llm:response", "id1"],
    ["provider:error", null],
  ]);
});

Deno.test("parallel calls keep their own ids, and what the loop emits meanwhile has none", async () => {
  const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  let calls = 0;
  const provider: KitProvider = async (coordinator) => {
    await coordinator.mount("providers", {
      name: "mock",
      getInfo: () => ({ id: "mock", display_name: "m", defaults: {} }) as never,
      listModels: () => Promise.resolve([]),
      parseToolCalls: () => [],
      async complete() {
        const call = calls++;
        const { hooks } = coordinator;
        await hooks.emit("llm:request", { call });
        await gates[call]!.promise;
        await hooks.emit("provider:retry", { provider: "mock", call });
        await hooks.emit("llm:response", { call });
        return { content: [{ type: "text", text: "done" }] };
      },
    } as Provider);
  };
  const loop: Orchestrator = {
    async execute(_prompt, _context, { mock }, _tools, hooks) {
      const pending = gates.map(() => mock!.complete({ messages: [] }));
      await hooks.emit("provider:throttle", { provider: "mock", delay: 0 });
      for (const gate of gates.toReversed()) gate.resolve();
      await Promise.all(pending);
      return "done";
    },
  };
  const { run, of, data } = kit({
    providers: [provider],
    orchestrator: loop,
  });
  await run();
  const ids = (event: string) =>
    Object.fromEntries(data(event).map(({ call, request_id }) => [call, request_id]));
  const begun = ids("llm:request");
  assertEquals(new Set(Object.values(begun)).size, 3);
  assertEquals([ids("provider:retry"), ids("llm:response")], [begun, begun]);
  assertEquals(of("provider:throttle")[0]?.data.request_id, undefined);
});

Deno.test("provider:request and provider:response have no id", () => {
  const data = {};
  for (const event of ["provider:request", "provider:response", "tool:pre"]) {
    assert(withRequestId(event, data) === data);
  }
});

Deno.test("a module under test sees the ids, too", async () => {
  const { hooks } = new TestCoordinator();
  const call = async () => {
    await hooks.emit("llm:request");
    await hooks.emit("llm:response");
  };
  await Promise.all([call(), call()]);
  await hooks.emit("llm:response");
  const ids = hooks.getEvents().map(([, { request_id }]) => request_id);
  assertMatch(String(ids[0]), /^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  assertEquals(new Set(ids).size, 3);
  assertEquals(ids.filter((id) => id === undefined).length, 1);
});
