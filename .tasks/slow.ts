/**
 * `deno task unit:slow` and `deno task e2e`: runs the slow unit tests, or the tests of the program but the
 * escape suite, which measures times and so runs alone. The files that take longest come first, so that none
 * of them runs at the end while a processor is idle.
 */
import { PERMISSIONS, runTests, testFilesIn } from "./test_files.ts";

/** Beginnings of the paths of these files. */
const LONGEST: readonly string[] = [
  "tests/e2e/shared_sessions_test.ts",
  "tests/e2e/store_test.ts",
  "tests/e2e/races_test.ts",
  "tests/e2e/escape_",
  "tests/sandbox/",
];

const [suite, ...options] = Deno.args;
const files = suite === "e2e"
  ? (await testFilesIn("tests/e2e/")).filter((path) => path !== "tests/e2e/escape_test.ts")
  : (await testFilesIn("tests/")).filter((path) => path.endsWith("_slow_test.ts"));
files.sort((a, b) => rankOf(a) - rankOf(b));
Deno.exit(await runTests([...PERMISSIONS, ...options, ...files], suite === "e2e"));

/** Returns the place of a file among the first ones, or of all others. */
function rankOf(path: string): number {
  const found = LONGEST.findIndex((beginning) => path.startsWith(beginning));
  return found < 0 ? LONGEST.length : found;
}
