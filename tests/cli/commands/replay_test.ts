/** `preamp replay`: what `run --output-format json-trace` saved, without a server. */
import { cli } from "../../../src/cli/mod.ts";
import { EXIT } from "../../../src/cli/errors.ts";
import { assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { fakeIo } from "../../support/io.ts";

const PLAN = `
session: {orchestrator: loop-streaming, context: context-simple}
system: Be brief.
providers: [provider-mock]
tools: [tool-calculator]
hooks: [{module: hooks-approval, config: {rules: [{tool: calculator, action: ask}]}}]
`;

/** A saved run. */
async function saved(): Promise<string> {
  const io = fakeIo({ terminal: false, stdin: PLAN });
  await cli(["run", "-p", "-", "--output-format", "json-trace", "compute 6*7"], io);
  return io.stdout;
}

Deno.test("replay of a saved run is equal; exit code 0", async () => {
  const io = fakeIo({ stdin: await saved() });
  assertEquals(await cli(["replay", "-"], io), EXIT.done);
  assertMatch(io.stdout, /^equal: \d+ entries of run run_\w+\n$/);
  const json = fakeIo({ stdin: await saved() });
  assertEquals(await cli(["replay", "--json", "-"], json), EXIT.done);
  assertEquals(JSON.parse(json.stdout), { equal: true });
});

Deno.test("replay of a changed log prints what differs in words; exit code 1", async () => {
  const recording = JSON.parse(await saved());
  const entry = recording.events.find(({ event }: { event: string }) => event === "tool:pre");
  entry.data.tool_input = { expression: "\u001b[2J" };
  const io = fakeIo({ stdin: JSON.stringify(recording) });
  assertEquals(await cli(["replay", "-"], io), EXIT.failed);
  assertMatch(
    io.stdout,
    /^different: call 1 of turn 1: recorded calculator \{"expression":".*"\}, now calculator \{"expression":"6\*7"\}\n$/,
  );
  assertEquals(io.stdout.includes("\u001b"), false);
  const json = fakeIo({ stdin: JSON.stringify(recording) });
  assertEquals(await cli(["replay", "--json", "-"], json), EXIT.failed);
  const { equal, first_difference } = JSON.parse(json.stdout);
  assertEquals([equal, first_difference.what, first_difference.call], [false, "call", 1]);
});

Deno.test("replay refuses files that are not saved runs; exit code 2", async () => {
  for (
    const stdin of [
      "",
      "nonsense",
      "[]",
      '{"run": {}, "events": []}',
      '{"run": {}, "events": [], "replay": {}}',
    ]
  ) {
    assertEquals(await cli(["replay", "-"], fakeIo({ stdin })), EXIT.usage);
  }
  assertEquals(await cli(["replay"], fakeIo()), EXIT.usage);
  assertEquals(await cli(["replay", "a", "b"], fakeIo()), EXIT.usage);
  assertEquals(await cli(["replay", "nowhere.json"], fakeIo()), EXIT.usage);
});

Deno.test("replay of a file with an impossible value says so; exit code 2", async () => {
  const recording = JSON.parse(await saved());
  const answer = recording.events.find(({ event }: { event: string }) => event === "provider:response");
  answer.data.response.tool_calls = [null];
  const io = fakeIo({ stdin: JSON.stringify(recording) });
  assertEquals(await cli(["replay", "-"], io), EXIT.usage);
  assertStringIncludes(io.stderr, "Cannot replay <stdin>: a value in it cannot be used: ");
  assertEquals(io.stderr.includes(".ts:"), false);
});
