/** What the tasks that run tests share. */

const ROOT = new URL("../", import.meta.url);

/** What tests may do, but those of the kernel. */
export const PERMISSIONS: readonly string[] = ["net=127.0.0.1", "read", "write", "env", "run"].map((name) =>
  `--allow-${name}`
);

/**
 * Resolves to the sorted paths of the test files of a folder (`tests/`, …) and, with `deep`, of those below
 * it.
 */
export async function testFilesIn(folder: string, deep = true): Promise<string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, ROOT))) {
    if (isDirectory && deep) files.push(...await testFilesIn(`${folder}${name}/`));
    if (name.endsWith("_test.ts")) files.push(folder + name);
  }
  return files.sort();
}

/**
 * Runs `deno test`; resolves to its exit code.
 *
 * @param wait Whether tests wait for disks or processes: then more files run at a time than there are cores.
 */
export async function runTests(args: readonly string[], wait: boolean): Promise<number> {
  const jobs = navigator.hardwareConcurrency + (wait ? 1 : 0);
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "--no-check", "--no-prompt", "--parallel", ...args],
    cwd: ROOT,
    env: { DENO_JOBS: String(jobs) },
  }).spawn().status;
  return code;
}
