/**
 * `deno task compile`: `main.ts` → `dist/preamp`, one executable with the permissions of `deno task start`
 * (src/docs/architecture.md#one-executable). Further arguments go to `deno compile`, such as
 * `--target aarch64-apple-darwin`. Without access to Deno's download host, `COMPILE_DENO` names another Deno
 * to compile with, and `DENORT_BIN` its base runtime.
 */

import { writePages } from "./page.ts";
import { writeSdkFiles } from "./sdk_files.ts";

const ROOT = new URL("../", import.meta.url);
const BUNDLE = new URL("dist/bundle/", ROOT);
/** esbuild's WebAssembly, beside the program's own code: read there by `src/loader/bundler/bundle.ts`. */
const WASM = new URL("esbuild.wasm.gz", BUNDLE);
/** The SDK for authors, and templates: read by `src/cli/author_files.ts`. */
const SDK_FILES = new URL("sdk.json.gz", BUNDLE);
const TEMPLATES = new URL("templates.json", BUNDLE);
/** The documentation, beside the program's own code: read there by `src/docs/pages.ts`. */
const DOCS = new URL("docs/", BUNDLE);
/** The plan of `preamp chat`, beside the program's own code: read there by `src/cli/chat/coder_plan.ts`. */
const CODER_PLAN = new URL("coder.yaml", BUNDLE);
const OUTPUT = new URL("dist/preamp", ROOT);

/**
 * Code generation from strings is off: with the loader's rewriting of imports this keeps a guest from loading
 * more code. Liftoff only: bundling at run time starts sooner.
 */
const V8_FLAGS = "--disallow-code-generation-from-strings,--liftoff-only";

/**
 * First files of workers: the bundler does not follow `new Worker(…)`; the files that start them name them
 * too.
 */
const ROOTS = [
  "src/sandbox/worker_runtime/main.ts",
  "src/store/sqlite/worker.ts",
  "modules/tool-mcp/message_worker.ts",
  "modules/tool-web/page_worker.ts",
];

interface Manifest {
  tasks: { start: string };
  unstable: string[];
}

const manifest = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT))) as Manifest;

await Deno.remove(BUNDLE, { recursive: true }).catch((error) => {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
});
// Code splitting keeps lazy imports lazy: start-up reads and compiles only what `serve` needs.
await run(Deno.execPath(), [
  "bundle",
  "--quiet",
  "--minify",
  "--code-splitting",
  `--outdir=${BUNDLE.pathname}`,
  new URL("main.ts", ROOT).pathname,
  ...ROOTS.map((root) => new URL(root, ROOT).pathname),
]);
await compress(import.meta.resolve("esbuild-wasm/esbuild.wasm"), WASM);
await writeSdkFiles(SDK_FILES);
await writeTemplates(TEMPLATES);
await copyDocs(DOCS);
await Deno.copyFile(new URL("plans/coder.yaml", ROOT), CODER_PLAN);
/** Files for browsers, beside the program's own code: read there by `src/server/page/page.ts`. */
const pages = await writePages(BUNDLE);
await tryStores(Deno.execPath(), ["run", "-A", "--no-config", new URL("main.js", BUNDLE).pathname]);
await compile(Deno.env.get("COMPILE_DENO") ?? Deno.execPath(), [
  "compile",
  "--quiet",
  "--no-config",
  "--no-code-cache", // it would be a file in the folder for temporary files, under a name that other users can know
  `--v8-flags=${V8_FLAGS}`,
  ...manifest.unstable.map((feature) => `--unstable-${feature}`),
  ...permissions(manifest.tasks.start),
  `--include=${WASM.pathname}`,
  `--include=${SDK_FILES.pathname}`,
  `--include=${TEMPLATES.pathname}`,
  `--include=${DOCS.pathname}`,
  `--include=${CODER_PLAN.pathname}`,
  ...pages.map(({ pathname }) => `--include=${pathname}`),
  ...ROOTS.map((root) => `--include=${new URL(root.replace(/\.ts$/, ".js"), BUNDLE).pathname}`),
  `--output=${OUTPUT.pathname}`,
  ...Deno.args,
  new URL("main.js", BUNDLE).pathname,
]);
if (!Deno.args.some((word) => word.startsWith("--target"))) await tryStores(OUTPUT.pathname, []);
const { size } = await Deno.stat(OUTPUT);
await Deno.stdout.write(new TextEncoder().encode(`dist/preamp: ${(size / 1e6).toFixed(1)} MB\n`));

/** Returns the permissions of the task that starts the server. */
function permissions(task: string): string[] {
  return task.split(" ").filter((word) => word === "--no-prompt" || word.startsWith("--allow-"));
}

/** Compresses esbuild's WebAssembly from 14 MB to 3.7 MB. */
async function compress(from: string, to: URL): Promise<void> {
  const file = await Deno.open(new URL(from));
  await Deno.writeFile(to, file.readable.pipeThrough(new CompressionStream("gzip")));
}

/** Writes the files of `src/cli/templates` as JSON: path → text. */
async function writeTemplates(to: URL): Promise<void> {
  const folder = new URL("src/cli/templates/", ROOT);
  const files: Record<string, string> = {};
  for await (const { name } of Deno.readDir(folder)) {
    for await (const file of Deno.readDir(new URL(`${name}/`, folder))) {
      files[`${name}/${file.name}`] = await Deno.readTextFile(new URL(`${name}/${file.name}`, folder));
    }
  }
  await Deno.writeTextFile(to, JSON.stringify(files));
}

/** Copies the pages of `src/docs`, and the README of each built-in module under the module's name. */
async function copyDocs(to: URL): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name } of Deno.readDir(new URL("src/docs/", ROOT))) {
    if (name.endsWith(".md")) await Deno.copyFile(new URL(`src/docs/${name}`, ROOT), new URL(name, to));
  }
  for await (const { name } of Deno.readDir(new URL("modules/", ROOT))) {
    const is_module = await Deno.stat(new URL(`modules/${name}/mod.ts`, ROOT)).then(() => true, () => false);
    if (is_module) { // other folders have files that modules share
      await Deno.copyFile(new URL(`modules/${name}/README.md`, ROOT), new URL(`${name}.md`, to));
    }
  }
}

/**
 * Opens a store of each kind with the program; ends this task if one cannot be opened. Deno 2.6 leaves what
 * the package `pg` needs out of a bundle.
 */
async function tryStores(command: string, args: readonly string[]): Promise<void> {
  const folder = new URL("try/", BUNDLE).pathname;
  await Deno.mkdir(folder);
  const open = async (store: string) => {
    const child = new Deno.Command(command, {
      args: [...args, "store", "migrate", "--store", store],
      env: { PREAMP_HOME: folder, NO_COLOR: "1" },
    });
    const { success, stdout, stderr } = await child.output();
    return { success, text: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
  };
  try {
    const file = await open(`sqlite:${folder}preamp.db`);
    const database = await open("postgres://preamp@127.0.0.1:1/none"); // nothing listens there
    const wrong = file.success ? database.text.includes("ECONNREFUSED") ? null : database : file;
    if (wrong === null) return;
    const fact = `the program that Deno ${Deno.version.deno} bundled cannot open its stores`;
    await Deno.stderr.write(
      new TextEncoder().encode(`Cannot compile: ${fact}; use Deno 2.9: ${wrong.text}\n`),
    );
    Deno.exit(1);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Runs `deno compile`. Ends this task if it fails, with a sentence where the base runtime is missing. */
async function compile(command: string, args: readonly string[]): Promise<void> {
  const child = new Deno.Command(command, { args: [...args], cwd: ROOT, stderr: "piped" });
  const { success, code, stderr } = await child.output();
  const text = new TextDecoder().decode(stderr);
  const [, file] = /\/(denort-[\w-]+\.zip)/.exec(text) ?? [];
  const sentence = success || file === undefined
    ? ""
    : `Cannot compile: Deno's base runtime ${file} cannot be downloaded from dl.deno.land; fetch it from the ` +
      `release of Deno ${Deno.version.deno}, unpack it, and name it in the variable DENORT_BIN\n`;
  await Deno.stderr.write(new TextEncoder().encode(text + sentence));
  if (!success) Deno.exit(code || 1);
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const { success, code } = await new Deno.Command(command, { args: [...args], cwd: ROOT }).spawn().status;
  if (!success) Deno.exit(code || 1);
}
