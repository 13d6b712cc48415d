/** The last box of R2's checklist: are there tests, and do they look at what `mount` mounts? Reads files, runs nothing. */
import { failed, passed } from "../kernel/module_checks.ts";
import type { Check } from "../kernel/validate.ts";
import type { ModuleType } from "../sdk/types.ts";

const TEST_FILE = /[._]test\.[jt]sx?$/;

/** The contract suites of `preamp/testing`: each mounts its module. */
const SUITES: Readonly<Partial<Record<ModuleType, string>>> = {
  tool: "testTool",
  provider: "testProvider",
  hook: "testHook",
  orchestrator: "testOrchestrator",
  context: "testContext",
};

/** Resolves to the check `module_tests` of the folder a module lies in, its `tests/` included. */
export async function checkTests(folder: URL, type: ModuleType): Promise<Check> {
  const name = "module_tests";
  const suite = SUITES[type] ?? "mount";
  const files = [...await testFiles(folder), ...await testFiles(new URL("tests/", folder))];
  const what = `write mod_test.ts with ${suite}("…", () => module) from "preamp/testing"`;
  if (files.length === 0) return failed(name, `there is no test beside the module: ${what}`, "warning");
  for (const file of files) {
    const text = await Deno.readTextFile(file);
    if (text.includes(`${suite}(`) || text.includes("mount(")) {
      return passed(name, decodeURIComponent(file.pathname.split("/").at(-1)!));
    }
  }
  return failed(name, `no test calls mount() or ${suite}(): ${what}`, "warning");
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
