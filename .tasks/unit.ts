/**
 * `deno task unit:kernel` and `unit:rest`: runs the unit tests of the kernel, without permissions, or all others. The
 * tests of a folder share an isolate: loading the program once for each file would take as long as the tests themselves.
 */

const TESTS = new URL("../tests/", import.meta.url);
/** Folders whose tests other tasks run. */
const OTHERS: readonly string[] = ["kernel", "e2e", "bench"];
const PERMISSIONS = ["net=127.0.0.1", "read", "write", "env", "run"].map((name) => `--allow-${name}`);

const [suite, ...options] = Deno.args;
const folders = suite === "kernel" ? [await testsOf("kernel")] : await allButKernel();
folders.sort((a, b) => b.files.length - a.files.length); // the longest first
const { code } = await run(folders, suite === "kernel" ? options : [...PERMISSIONS, ...options]);
Deno.exit(code);

/** Test files that share an isolate. */
interface Folder {
  readonly name: string;
  readonly files: readonly URL[];
}

async function allButKernel(): Promise<Folder[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(TESTS)) {
    if (isDirectory && !OTHERS.includes(name)) names.push(name);
  }
  const folders = await Promise.all(names.map(testsOf));
  const top = { name: "tests", files: await testFilesIn(TESTS, false) };
  return [...folders, top].filter(({ files }) => files.length > 0);
}

async function testsOf(name: string): Promise<Folder> {
  return { name, files: await testFilesIn(new URL(`${name}/`, TESTS)) };
}

async function testFilesIn(folder: URL, deep = true): Promise<URL[]> {
  const files: URL[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory && deep) files.push(...await testFilesIn(new URL(`${name}/`, folder)));
    if (name.endsWith("_test.ts") && !name.endsWith("_slow_test.ts")) files.push(new URL(name, folder));
  }
  return files.sort((a, b) => a.href < b.href ? -1 : 1);
}

/** Runs `deno test` on one file for each folder, which imports the tests. */
async function run(folders: readonly Folder[], options: readonly string[]): Promise<Deno.CommandStatus> {
  const shared = await Deno.makeTempDir();
  try {
    const paths = await Promise.all(folders.map(async ({ name, files }) => {
      const path = `${shared}/${name}_test.ts`;
      await Deno.writeTextFile(path, files.map(({ href }) => `import ${JSON.stringify(href)};\n`).join(""));
      return path;
    }));
    const args = ["test", "--no-check", "--no-prompt", "--parallel", ...options, ...paths];
    // tests of the other folders wait for disks and processes: more of them run at a time than there are cores
    const jobs = navigator.hardwareConcurrency + (suite === "rest" ? 1 : 0);
    const env = { DENO_JOBS: String(jobs) };
    return await new Deno.Command(Deno.execPath(), { args, cwd: new URL("../", TESTS), env }).spawn().status;
  } finally {
    await Deno.remove(shared, { recursive: true });
  }
}
