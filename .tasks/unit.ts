/**
 * `deno task unit:kernel` and `unit:rest`: runs the unit tests of the kernel, without permissions, or all
 * others. The tests of a folder share an isolate: loading the program once for each file would take as long
 * as the tests themselves.
 */
import { PERMISSIONS, runTests, testFilesIn } from "./test_files.ts";

const ROOT = new URL("../", import.meta.url);
/** Folders whose tests other tasks run. */
const OTHERS: readonly string[] = ["kernel", "e2e", "bench"];

const [suite, ...options] = Deno.args;
const folders = suite === "kernel" ? [await testsOf("kernel")] : await allButKernel();
folders.sort((a, b) => b.files.length - a.files.length); // the longest first
Deno.exit(await run(folders, suite === "kernel" ? options : [...PERMISSIONS, ...options]));

/** Test files that share an isolate. */
interface Folder {
  readonly name: string;
  readonly files: readonly string[];
}

async function allButKernel(): Promise<Folder[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL("tests/", ROOT))) {
    if (isDirectory && !OTHERS.includes(name)) names.push(name);
  }
  const folders = await Promise.all(names.map(testsOf));
  const top = { name: "tests", files: withoutSlow(await testFilesIn("tests/", false)) };
  return [...folders, top].filter(({ files }) => files.length > 0);
}

async function testsOf(name: string): Promise<Folder> {
  return { name, files: withoutSlow(await testFilesIn(`tests/${name}/`)) };
}

function withoutSlow(files: readonly string[]): string[] {
  return files.filter((path) => !path.endsWith("_slow_test.ts"));
}

/** Runs `deno test` on one file for each folder, which imports the tests; resolves to its exit code. */
async function run(folders: readonly Folder[], options: readonly string[]): Promise<number> {
  const shared = await Deno.makeTempDir();
  try {
    const paths = await Promise.all(folders.map(async ({ name, files }) => {
      const path = `${shared}/${name}_test.ts`;
      const imports = files.map((file) => `import ${JSON.stringify(new URL(file, ROOT).href)};\n`);
      await Deno.writeTextFile(path, imports.join(""));
      return path;
    }));
    return await runTests([...options, ...paths], suite === "rest");
  } finally {
    await Deno.remove(shared, { recursive: true });
  }
}
