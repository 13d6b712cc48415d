/**
 * The folder that `preamp init --deploy` writes: an agent endpoint, and the sources of this program, which
 * it runs on until a registry serves them.
 */
import manifest from "../../deno.json" with { type: "json" };
import { bundleScript } from "../app/page_bundle.ts";
import { buildPage, readSources } from "../server/page/build.ts";
import { isObject } from "../sdk/json.ts";
import { readOptional, writeFailure } from "../settings/paths.ts";
import { UsageError } from "./arguments.ts";

/** The root of this program's sources. */
const ROOT = new URL("../../", import.meta.url);

/** The folders of this program's code. */
const SOURCES = ["src/", "modules/"];

/** Deno's lock of packages. */
const LOCK_FILE = "deno.lock";

/** The sources of this program in the folder of an agent. */
export const OWN_FOLDER = "vendor/preamp/";

/** First files of child processes and workers, whose code a host must have fetched before. */
const CHILDREN = [
  "src/sandbox/guest_child.ts",
  "src/sandbox/worker_runtime/main.ts",
  "src/loader/bundler/bundler_source.js",
];

/** Checks that this program has its sources beside it. @throws {UsageError} if it has not. */
export function checkSources(): void {
  if (!Deno.build.standalone && ROOT.protocol === "file:") return;
  throw new UsageError(
    "Cannot use --deploy: it copies the sources of this program, which the executable does not have; " +
      "run it from a copy of the repository: deno run -A main.ts init --deploy DIR",
  );
}

/** Returns the versions of packages that this program was tested with; none if it is not a repository. */
export async function deployLock(): Promise<Record<string, string>> {
  const text = await readOptional(new URL(LOCK_FILE, ROOT), LOCK_FILE);
  return text === undefined ? {} : { [LOCK_FILE]: text };
}

/** Returns the text of the folder's `deno.json`, without the packages of this program's tests. */
export async function deployConfig(): Promise<string> {
  const code = (await Promise.all(SOURCES.map((path) => codeIn(new URL(path, ROOT))))).join("");
  const used = Object.entries<string>(manifest.imports).filter(([name]) =>
    name.startsWith("preamp") || code.includes(`"${name}"`) || code.includes(`"${name}/`)
  );
  const imports = used.map(([name, target]) => [name, target.replace(/^\.\//, `./${OWN_FOLDER}`)] as const);
  const preamp = `deno run -A ${OWN_FOLDER}main.ts`;
  const tasks = {
    install: `deno install --entrypoint main.ts ${CHILDREN.map((path) => OWN_FOLDER + path).join(" ")}`,
    start: "deno serve -A --host 127.0.0.1 --port 8000 main.ts",
    vendor: `${preamp} plan vendor --config preamp.yaml --inline plan.yaml -o agents/default.yaml`,
    explain: `${preamp} plan explain --config preamp.yaml agents/default.yaml`,
    check: `${preamp} config check preamp.yaml`,
  };
  const { unstable, nodeModulesDir, allowScripts } = manifest;
  const exclude = ["vendor/", "agents/modules/"];
  const config = {
    tasks,
    imports: Object.fromEntries(imports),
    unstable,
    nodeModulesDir,
    allowScripts,
    fmt: { exclude },
    lint: { exclude },
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

/** Resolves to the text of all code in a folder. */
async function codeIn(folder: URL): Promise<string> {
  const parts: Promise<string>[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) parts.push(codeIn(new URL(`${encodeURIComponent(name)}/`, folder)));
    else if (/\.[jt]sx?$/.test(name)) {
      parts.push(Deno.readTextFile(new URL(encodeURIComponent(name), folder)));
    }
  }
  return (await Promise.all(parts)).join("");
}

/**
 * Writes the sources of this program into a folder, in place of those that are there, with the built page.
 *
 * @throws {UsageError} if something else is there, or it cannot be written.
 */
export async function writeOwnSources(folder: URL): Promise<void> {
  const target = new URL(OWN_FOLDER, folder);
  await checkReplaceable(target);
  try {
    await Deno.remove(target, { recursive: true }).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
    for (const path of manifest.publish.include) await copy(new URL(path, ROOT), new URL(path, target));
    const sources = await readSources();
    for (const name of ["page", "docs"] as const) {
      const built = JSON.stringify(await buildPage(name, sources, bundleScript));
      await Deno.writeTextFile(new URL(`src/server/page/${name}.json`, target), built);
    }
  } catch (error) {
    throw writeFailure(OWN_FOLDER, error);
  }
}

async function checkReplaceable(target: URL): Promise<void> {
  if (target.href === ROOT.href) {
    throw new UsageError(
      `Cannot replace ${OWN_FOLDER}: this program runs from it; run init from another copy`,
    );
  }
  if (!await Deno.lstat(target).then(() => true, () => false)) return;
  const text = await readOptional(new URL("deno.json", target), `${OWN_FOLDER}deno.json`);
  if (text !== undefined && nameIn(text) === manifest.name) return;
  throw new UsageError(`Cannot write ${OWN_FOLDER}: something else is there; move it away`);
}

function nameIn(json: string): unknown {
  try {
    const config: unknown = JSON.parse(json);
    return isObject(config) ? config.name : undefined;
  } catch {
    return undefined; // it is not ours
  }
}

/** Copies a file, or a folder with all that is in it. */
async function copy(from: URL, to: URL): Promise<void> {
  if ((await Deno.stat(from)).isFile) {
    await Deno.mkdir(new URL(".", to), { recursive: true });
    return await Deno.copyFile(from, to);
  }
  for await (const { name } of Deno.readDir(from)) {
    await copy(
      new URL(`${from.href}/${encodeURIComponent(name)}`),
      new URL(`${to.href}/${encodeURIComponent(name)}`),
    );
  }
}
