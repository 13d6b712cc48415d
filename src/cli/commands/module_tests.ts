/** The last box of R2's checklist: are there tests, and do they look at what `mount` mounts? Reads files, runs nothing. */
import { failed, passed } from "../../kernel/mounting/module_checks.ts";
import type { Check } from "../../kernel/mounting/validate_instance.ts";
import type { ModuleType } from "../../sdk/types.ts";
import { ENTRY_NAMES } from "../module_target.ts";

const TEST_FILE = /[._]test\.[jt]sx?$/;

/** The contract suites of `preamp/testing`: each mounts its module. */
const SUITES: Readonly<Partial<Record<ModuleType, string>>> = {
  tool: "testTool",
  provider: "testProvider",
  hook: "testHook",
  orchestrator: "testOrchestrator",
  context: "testContext",
};

/**
 * Resolves to the check `module_tests` of a module. The tests of a folder's entry file are in that folder or its `tests/`, those
 * of a single file `clock.ts` in `clock_test.ts`. Null when there is nothing to look at: a single file without tests, a URL.
 */
export async function checkTests(entry: string, type: ModuleType): Promise<Check | null> {
  if (!entry.startsWith("file:")) return null;
  const name = "module_tests";
  const suite = SUITES[type] ?? "mount";
  const folder = new URL(".", entry);
  const own = nameOf(new URL(entry)).replace(/\.[a-z]+$/i, "");
  const whole = ENTRY_NAMES.has(own);
  const all = [...await testFiles(folder), ...whole ? await testFiles(new URL("tests/", folder)) : []];
  const files = whole ? all : all.filter((file) => nameOf(file).replace(TEST_FILE, "") === own);
  const what = `write ${own}_test.ts with ${suite}("…", () => module) from "preamp/testing"`;
  if (files.length === 0) {
    return whole ? failed(name, `there is no test beside the module: ${what}`, "warning") : null;
  }
  for (const file of files) {
    const text = await Deno.readTextFile(file);
    if (text.includes(`${suite}(`) || text.includes("mount(")) return passed(name, nameOf(file));
  }
  return failed(name, `no test calls mount() or ${suite}(): ${what}`, "warning");
}

function nameOf(file: URL): string {
  return decodeURIComponent(file.pathname.split("/").at(-1)!); // a path has parts
}

async function testFiles(folder: URL): Promise<URL[]> {
  const files: URL[] = [];
  try {
    for await (const { name, isFile } of Deno.readDir(folder)) {
      if (isFile && TEST_FILE.test(name)) files.push(new URL(encodeURIComponent(name), folder));
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return files.sort((a, b) => a.href < b.href ? -1 : 1);
}
