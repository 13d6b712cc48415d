/**
 * `deno task unit:slow` and `deno task e2e`: runs the slow unit tests, or the tests of the program but the escape suite,
 * which measures times and so runs alone. The files that take longest come first, so that none of them runs at the end
 * while a processor is idle.
 */

const ROOT = new URL("../", import.meta.url);
/** Beginnings of the paths of these files. */
const LONGEST: readonly string[] = [
  "tests/e2e/shared_sessions_test.ts",
  "tests/e2e/store_test.ts",
  "tests/e2e/races_test.ts",
  "tests/e2e/escape_",
  "tests/sandbox/",
];
const MEASURED = "tests/e2e/escape_test.ts";
const PERMISSIONS = ["net=127.0.0.1", "read", "write", "env", "run"].map((name) => `--allow-${name}`);

const [suite, ...options] = Deno.args;
const all = await testFilesIn("tests/");
const files = all.filter((path) =>
  path.startsWith("tests/e2e/")
    ? suite === "e2e" && path !== MEASURED
    : suite === "unit" && path.endsWith("_slow_test.ts")
);
files.sort((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
const args = ["test", "--no-check", "--no-prompt", "--parallel", ...PERMISSIONS, ...options, ...files];
// tests of the program wait for disks, leases and processes: more of them run at a time than there are cores
const jobs = navigator.hardwareConcurrency + (suite === "e2e" ? 1 : 0);
const env = { DENO_JOBS: String(jobs) };
const { code } = await new Deno.Command(Deno.execPath(), { args, cwd: ROOT, env }).spawn().status;
Deno.exit(code);

/** Returns the place of a file among the first ones, or of all others. */
function rankOf(path: string): number {
  const found = LONGEST.findIndex((beginning) => path.startsWith(beginning));
  return found < 0 ? LONGEST.length : found;
}

async function testFilesIn(folder: string): Promise<string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, ROOT))) {
    if (isDirectory) files.push(...await testFilesIn(`${folder}${name}/`));
    else if (name.endsWith("_test.ts")) files.push(folder + name);
  }
  return files;
}
