/** What a session makes of each misbehaving loop: its turn ends, once, and nothing happens that is denied. */
import { testOrchestrator } from "preamp/testing";
import { assertToolPairs } from "../../src/testing/assertions.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { Orchestrator } from "../../src/sdk/types.ts";
import { assert, assertEquals } from "../assert.ts";
import { failures } from "../contracts/broken_kit.ts";
import {
  ENDLESS,
  FORGING,
  lingering,
  REPEATING,
  SILENT,
  SPEECHLESS,
  STUBBORN,
  THROWING,
} from "../support/misbehaving_loops.ts";
import { kit, tool, until } from "../support/sessions.ts";

const LOOPS: [name: string, loop: Orchestrator, status: string, answer: string][] = [
  ["emits nothing", SILENT, "completed", "done"],
  ["tries again after every refusal", STUBBORN, "completed", "done"],
  ["emits its events twice", REPEATING, "completed", "done"],
  ["reports what did not happen", FORGING, "completed", "done"],
  ["continues after its end", lingering(), "completed", "done"],
  ["throws", THROWING, "failed", ""],
  ["returns no text", SPEECHLESS, "incomplete", ""],
];

for (const [name, orchestrator, status, answer] of LOOPS) {
  Deno.test(`a turn ends once, with its status, when its loop ${name}`, async () => {
    const { run, session, turn, messages, clock } = kit({ orchestrator, tools: [tool("t")] });
    const outcome = await run();
    assertEquals([outcome.status, outcome.output_text], [status, answer]);
    for (const event of ["execution:start", "execution:end", "orchestrator:complete"]) {
      assertEquals(turn().filter((one) => one === event).length, 1, event);
    }
    assertToolPairs(messages());
    await session.cleanup(status);
    assertEquals(clock.pending, 0);
  });
}

Deno.test("a turn whose loop never ends is abandoned ten seconds after it was cancelled", async () => {
  const { run, session, clock } = kit({ orchestrator: ENDLESS });
  const running = run();
  await until(() => clock.pending > 0);
  await session.cancel("immediate");
  await clock.advance(10_000);
  assertEquals((await running).status, "cancelled");
});

Deno.test("a loop that continues after its end reaches no model and no tool", async () => {
  const loop = lingering();
  const provider = new MockProvider();
  let ran = 0;
  const { run } = kit({ orchestrator: loop, providers: [provider], tools: [tool("t", () => ++ran)] });
  await run();
  const left = await loop.left;
  assertEquals([left.map(({ status }) => status), provider.call_count, ran], [
    ["rejected", "rejected"],
    1,
    0,
  ]);
});

Deno.test("testOrchestrator() fails each misbehaving loop that ends", async () => {
  for (const [name, loop] of LOOPS.filter(([, loop]) => loop !== REPEATING)) {
    const { failed } = await failures((title, test) => testOrchestrator(title, () => loop, { test }));
    assert(failed.length > 0, name);
  }
});
