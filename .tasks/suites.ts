/**
 * `deno task unit:…`, `deno task e2e` and `deno task browser`: runs the test files of a suite.
 *
 * - `kernel`: the unit tests of the kernel, without permissions
 * - `rest`: all other unit tests
 * - `slow`: the slow unit tests
 * - `e2e`: the tests of the program but the escape suite, which measures times and so runs alone
 * - `browser`: the tests of the page in Chromium
 */

const ROOT = new URL("../", import.meta.url);
/** What tests may do, but those of the kernel. */
const PERMISSIONS: readonly string[] = ["net=127.0.0.1", "read", "write", "env", "run"].map((name) =>
  `--allow-${name}`
);
/** Folders that do not belong to `rest`. */
const OTHERS: readonly string[] = ["kernel", "e2e", "browser", "bench"];
const ESCAPE_SUITE = "tests/e2e/escape_test.ts";
/**
 * Beginnings of the paths of the files that take longest. They come first, so that none of them runs at the
 * end while a processor is idle. Deno begins with the deepest folders, whatever their order here.
 */
const LONGEST: readonly string[] = [
  "tests/e2e/shared_sessions_test.ts",
  "tests/e2e/store_test.ts",
  "tests/e2e/kill_points_test.ts",
  "tests/e2e/races_test.ts",
  "tests/e2e/escape_",
  "tests/e2e/author_guide_test.ts",
  "tests/e2e/module_validate_test.ts",
  "tests/e2e/readme_test.ts",
  "tests/sandbox/",
];

/** Test files by suite. `shared`: a temporary folder. */
const SUITES: Readonly<Record<string, (shared: string) => Promise<string[]>>> = {
  kernel: async (shared) => {
    const files = withoutSlow(await testFilesIn("tests/kernel/"));
    return [await inOneIsolate("kernel", files, shared)];
  },
  rest: unitTestsByFolder,
  slow: async () => (await testFilesIn("tests/")).filter(isSlow),
  e2e: async () => (await testFilesIn("tests/e2e/")).filter((path) => path !== ESCAPE_SUITE),
  browser: () => testFilesIn("tests/browser/"),
};
/** Files at a time beyond the number of cores: tests wait for disks and processes. */
const WAITING_FILES: Readonly<Record<string, number>> = { kernel: 0, rest: 1, slow: 1, e2e: 2, browser: 0 };

const [suite = "", ...options] = Deno.args;
Deno.exit(await run());

async function run(): Promise<number> {
  const shared = await Deno.makeTempDir();
  try {
    const files = await SUITES[suite]!(shared); // the tasks name these suites only
    const permissions = suite === "kernel" ? [] : PERMISSIONS;
    const { code } = await new Deno.Command(Deno.execPath(), {
      args: [
        "test",
        "--no-check",
        "--no-prompt",
        "--parallel",
        ...permissions,
        ...options,
        ...files.sort((a, b) => rankOf(a) - rankOf(b)),
      ],
      cwd: ROOT,
      env: { DENO_JOBS: String(navigator.hardwareConcurrency + WAITING_FILES[suite]!) },
    }).spawn().status;
    return code;
  } finally {
    await Deno.remove(shared, { recursive: true });
  }
}

/** Returns the place of a file among the first ones, or of all others. */
function rankOf(path: string): number {
  const found = LONGEST.findIndex((beginning) => path.startsWith(beginning));
  return found < 0 ? LONGEST.length : found;
}

/** Returns one file for each folder, the folders with most tests first. */
async function unitTestsByFolder(shared: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL("tests/", ROOT))) {
    if (isDirectory && !OTHERS.includes(name)) names.push(name);
  }
  const folders = await Promise.all(
    names.map(async (name) => ({ name, files: withoutSlow(await testFilesIn(`tests/${name}/`)) })),
  );
  folders.push({ name: "tests", files: withoutSlow(await testFilesIn("tests/", false)) });
  const filled = folders.filter(({ files }) => files.length > 0).sort((a, b) =>
    b.files.length - a.files.length
  );
  return await Promise.all(filled.map(({ name, files }) => inOneIsolate(name, files, shared)));
}

/**
 * Writes a file that imports tests, which then share an isolate: loading the program once for each of them
 * would take as long as the tests themselves.
 */
async function inOneIsolate(name: string, files: readonly string[], shared: string): Promise<string> {
  const path = `${shared}/${name}_test.ts`;
  const imports = files.map((file) => `import ${JSON.stringify(new URL(file, ROOT).href)};\n`);
  await Deno.writeTextFile(path, imports.join(""));
  return path;
}

function isSlow(path: string): boolean {
  return path.endsWith("_slow_test.ts");
}

function withoutSlow(files: readonly string[]): string[] {
  return files.filter((path) => !isSlow(path));
}

/**
 * Resolves to the sorted paths of the test files of a folder (`tests/`, …) and, with `deep`, of those below
 * it.
 */
async function testFilesIn(folder: string, deep = true): Promise<string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, ROOT))) {
    if (isDirectory && deep) files.push(...await testFilesIn(`${folder}${name}/`));
    if (name.endsWith("_test.ts")) files.push(folder + name);
  }
  return files.sort();
}
