import { assertEquals } from "../../assert.ts";
import { cli } from "../../../src/cli/mod.ts";
import { exampleDocument, referencePage } from "../../../src/policy/reference.ts";
import { fakeIo } from "../../support/io.ts";

async function run(command: string, words: readonly string[], stdin = "") {
  const io = fakeIo({ stdin, cwd: new URL("../../fixtures/amplifier/", import.meta.url) });
  const code = await cli(["config", command, ...words], io);
  return { code, stdout: io.stdout, stderr: io.stderr };
}

Deno.test("config example and config reference print the table of settings", async () => {
  assertEquals(await run("example", []), { code: 0, stdout: exampleDocument(), stderr: "" });
  assertEquals(await run("reference", []), { code: 0, stdout: referencePage(), stderr: "" });
});

Deno.test("config check accepts the output of config example", async () => {
  assertEquals(await run("check", ["-"], exampleDocument()), {
    code: 0,
    stdout: "<stdin>: ok\n",
    stderr: "",
  });
});

Deno.test("config check reports every mistake with line, column and advice, and exits 3", async () => {
  const text = `limits: { max_iteration: 5, max_plan_bytes: 1MB }
store: mysql:x
polices: {}
auth: { keys: [{ name: a, sha256: "${"0".repeat(64)}", policy: smal }] }
policies: { small: { limits: { max_concurrent_runs: 3 } } }
`;
  const { code, stdout, stderr } = await run("check", ["-"], text);
  assertEquals([code, stdout], [3, ""]);
  const found = stderr.trimEnd().split("\n").map((line) => {
    const [, place, path, advice] = /^error: <stdin>:(\d+:\d+) {2}(\S+) .*?(?: \(([^()]*)\))?$/.exec(line) ??
      [];
    return [place, path, advice];
  });
  assertEquals(found.sort(([a = ""], [b = ""]) => a < b ? -1 : 1), [
    ["1:11", "limits.max_iteration", 'did you mean "max_iterations"?'],
    ["1:29", "limits.max_plan_bytes", undefined],
    ["2:1", "store", undefined],
    ["3:1", "polices", 'did you mean "policies"?'],
    ["4:103", "auth.keys[0].policy", 'did you mean "small"?'],
    [
      "5:32",
      "policies.small.limits.max_concurrent_runs",
      "set limits.max_concurrent_runs of the server; max_runs_per_key limits one key",
    ],
  ]);
});

for (
  const [text, expected] of [
    ["- limits", ": received a list\n"],
    ['limits: { max_cost_usd: "-1" }', ': received "-1"\n'],
    [
      `auth: { keys: [{ name: a, sha256: "${"0".repeat(64)}", policy: small }] }`,
      'Cannot use policy "small": policies has no such entry (add it to policies, or leave it out)\n',
    ],
  ] as const
) {
  Deno.test(`config check gives advice that fits to ${text}`, async () => {
    const { code, stderr } = await run("check", ["-"], text);
    assertEquals([code, stderr.slice(-expected.length)], [3, expected]);
  });
}

Deno.test("config check exits 2 for a missing file, and for two files", async () => {
  assertEquals((await run("check", ["none.yaml"])).code, 2);
  assertEquals((await run("check", [])).stderr.includes('"preamp.yaml": there is no such file'), true);
  const { code, stderr } = await run("check", ["a", "b"]);
  assertEquals([code, stderr.includes('Cannot use "b": config check takes at most 1 argument')], [2, true]);
});
