import { CANONICAL_EVENTS } from "../../src/sdk/event_table.ts";
import { EVENT_DATA } from "../../src/sdk/schemas/event_data.ts";
import type { HookHandler } from "../../src/sdk/types.ts";
import { assertEquals } from "../assert.ts";
import { tool } from "../support/sessions.ts";
import { service, type TestPlan } from "../support/runs.ts";
import { mock, runToEnd } from "./play.ts";

/** Runs a plan whose hook has handlers for these events; returns its warnings as `code: message`. */
async function warningsOf(events: readonly string[], more: TestPlan = {}): Promise<string[]> {
  const quiet: HookHandler = () => null;
  const made = service({
    plans: {
      plan: {
        providers: [mock("done")],
        ...more,
        hooks: [({ hooks }) => events.forEach((event) => hooks.register(event, quiet)), ...more.hooks ?? []],
      },
    },
  });
  const handle = await made.post("plan");
  const { warnings } = await runToEnd(made, handle.id, { plan: {} });
  return warnings.map(({ code, message }) => `${code}: ${message}`);
}

const warningOf = (event: string, why: string) =>
  `event_unknown: Module "hook-0" registered a handler for "${event}": ${why}`;

for (
  const [event, why] of [
    ["tool_pre", 'nothing emits this event; did you mean "tool:pre"?'],
    ["PreToolUse", "nothing emitted this event, and no module declares it (observability.events)"],
    ["tool:per", 'nothing emits this event; did you mean "tool:pre"?'],
    ["promptsubmit", 'nothing emits this event; did you mean "prompt:submit"?'],
    ["audit:flush", "nothing emitted this event, and no module declares it (observability.events)"],
    ["tools:*", 'nothing emits this event; did you mean "tool:*"?'],
    ["context:message", "this event is only logged, and calls no handlers"],
    ["run:*", "this event is only logged, and calls no handlers"],
  ]
) {
  Deno.test(`a handler of an event that nothing emits causes a warning: ${event}`, async () => {
    assertEquals(await warningsOf([event!]), [warningOf(event!, why!)]);
  });
}

Deno.test("handlers of events that the runtime emits or reserves, or that a module declares or emits, cause no warning", async () => {
  const canonical = Object.keys(EVENT_DATA).filter((event) =>
    !/^(run:|session:state|content_block:void|context:(message|reset))/.test(event)
  );
  const warnings = await warningsOf(["*", "tool:*", "dice:*", "dice:rolled", "quiet:emitted", ...canonical], {
    tools: [async (coordinator) => {
      await coordinator.mount("tools", tool("dice"));
      coordinator.registerContributor("observability.events", "tool-dice", () => ["dice:rolled"]);
      coordinator.hooks.register("prompt:submit", async () => {
        await coordinator.hooks.emit("quiet:emitted", {});
      });
    }],
  });
  assertEquals(warnings, []);
});

Deno.test("CANONICAL_EVENTS are the events that have a schema", () => {
  assertEquals([...CANONICAL_EVENTS].toSorted(), Object.keys(EVENT_DATA).toSorted());
});

Deno.test("a contributor of events that fails does not delay the end of a run", async () => {
  const warnings = await warningsOf(["tool:per"], {
    tools: [async (coordinator) => {
      await coordinator.mount("tools", tool("t"));
      coordinator.registerContributor("observability.events", "t", () => {
        throw new Error("no");
      });
    }],
  });
  assertEquals(warnings, [warningOf("tool:per", 'nothing emits this event; did you mean "tool:pre"?')]);
});

Deno.test("a run has at most 20 such warnings", async () => {
  const events = Array.from({ length: 100 }, (_, index) => `audit:${index}`);
  assertEquals((await warningsOf(events)).length, 20);
});
