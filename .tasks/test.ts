/**
 * `deno task test`: runs every gate and every test, and prints one line with the total. `quick`
 * (`deno task ok`) leaves out `*_slow_test.ts`, the e2e tests and the tests in Chromium, tries few of the
 * cases of large tests, and stops at the first gate or suite that fails.
 */

const SOURCES = ["main.ts", "src", "modules", "plans", "tests", ".tasks"];

/** Checks that count as one test each. */
const GATES: readonly (readonly string[])[] = [
  ["fmt", "--check", "--quiet"],
  ["lint", "--quiet"],
  [
    "doc",
    "--quiet",
    "--lint",
    "src/sdk/mod.ts",
    "src/sdk/loop.ts",
    "src/sdk/context.ts",
    "src/sdk/provider.ts",
    "src/sdk/web.ts",
    "src/sdk/testing.ts",
  ],
];
/**
 * Checks the types of all files and of the examples in the docs; it uses one core, so that all else runs
 * meanwhile.
 */
const TYPES: readonly string[] = ["check", "--doc", "--quiet", ...SOURCES, "README.md"];
const QUICK_SUITES = ["unit:kernel", "unit:rest", "unit:docs"];
/**
 * Suites that `quick` leaves out. They run at once: while the tests of one wait, those of the other have the
 * processors.
 */
const SLOW_SUITES = ["unit:slow", "e2e"];
/** Suites that need the processors for themselves: Chromium draws, and the escape suite measures times. */
const LAST_SUITES = ["browser", "e2e:escape"];

interface Count {
  passed: number;
  failed: number;
}

const quick = Deno.args.includes("quick");
const total: Count = { passed: 0, failed: 0 };
const types = runGate(TYPES);
for (const args of GATES) {
  if (quick && total.failed > 0) break;
  await runGate(args);
}
for (const suite of QUICK_SUITES) {
  if (quick && total.failed > 0) break;
  await runSuite(suite);
}
if (!quick) {
  await Promise.all(SLOW_SUITES.map(runSuite));
  await types;
  for (const suite of LAST_SUITES) await runSuite(suite);
}
await types;
print(`${total.passed} passed, ${total.failed} failed`);
Deno.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);

async function runGate(args: readonly string[]): Promise<void> {
  const { success } = await run(args);
  print(`${success ? "ok" : "FAILED"}  deno ${args.slice(0, 2).join(" ")}`);
  add(success ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 });
}

async function runSuite(suite: string): Promise<void> {
  const { success, text } = await run(["task", "--quiet", suite]);
  const count = summaryOf(text);
  // a file that cannot be loaded, or a suite that did not start, counts as one failure
  add(success || count.failed > 0 ? count : { ...count, failed: 1 });
}

function add({ passed, failed }: Count): void {
  total.passed += passed;
  total.failed += failed;
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

/** Runs `deno …` and forwards its output; resolves to its stdout. */
async function run(args: readonly string[]): Promise<{ success: boolean; text: string }> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: new URL("../", import.meta.url),
    env: { NO_COLOR: "1", ...(quick ? {} : { PROPERTY_RUNS: "many" }) },
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let text = "";
  for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += part;
    Deno.stdout.writeSync(new TextEncoder().encode(part));
  }
  return { success: (await child.status).success, text };
}

/** Returns the sum of the last lines of `deno test`: `ok | 12 passed (3 steps) | 0 failed (1s)`. */
function summaryOf(text: string): Count {
  const count: Count = { passed: 0, failed: 0 };
  for (const line of text.split("\n")) {
    const found = /^(?:ok|FAILED) \| (\d+) passed(?: \([^)]*\))? \| (\d+) failed/.exec(line);
    count.passed += Number(found?.[1] ?? 0);
    count.failed += Number(found?.[2] ?? 0);
  }
  return count;
}
