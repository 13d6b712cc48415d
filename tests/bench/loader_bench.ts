/**
 * Modules by URL: loads graphs of 1, 10 and 100 files over HTTP on loopback, compared with a bare
 * esbuild-wasm bundle of the same files with esbuild initialised. Also measures requests of a cached graph,
 * and memory before, during and after.
 *
 *   deno run -A tests/bench/loader_bench.ts [rounds]
 */
import * as esbuild from "esbuild-wasm/esm/browser.js";
import { createBundlerProcess } from "../../src/loader/bundler/bundler_process.ts";
import { linkModule } from "../../src/loader/link.ts";
import type { Bundler, LoadContext, LoadSpec } from "../../src/loader/types.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { type Cell, compare, print, report, tableOf, timed } from "./figures.ts";
import { loaderOf, type TestLoader } from "../support/loader.ts";
import { residentMb } from "./processes.ts";

const SIZES = [1, 10, 100];
/** Milliseconds until the idle bundler process is stopped; one minute by default. */
const IDLE_MS = 3_000;

const rounds = Number(Deno.args[0] ?? 15);
const files = new Map<string, string>();
let requests = 0;
let loads = 0;
for (const size of SIZES) addGraph(size);
const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
  requests++;
  return new Response(files.get(new URL(request.url).pathname));
});
const context: LoadContext = { origin: "operator", namespace: "bench", policy: defaultPolicy() };

const before_mb = await residentMb(Deno.pid);
const process = createBundlerProcess({ idle_ms: IDLE_MS });
/** The bundler that all loaders share. */
const bundler: Bundler = {
  bundle: (request, client) => process.bundle(request, client),
  imports: (file, max, client) => process.imports(file, max, client),
  close: () => Promise.resolve(),
};
const first_ms = await timed(() => once((loader) => loader.load(specOf(1), context)));
const bundler_mb = await childrenMb();
const loaded_mb = await residentMb(Deno.pid);

const { default: wasmModule } = await import("./esbuild_wasm.js") as { default: WebAssembly.Module };
await esbuild.initialize({ wasmModule, worker: false });

const rows: Cell[][] = [];
const figures: Record<string, unknown> = {};
for (const size of SIZES) {
  const loader = loaderOf({ bundler });
  const spec = specOf(size);
  let instance = 0;
  const { bare, cold, warm, again } = await compare(rounds, {
    bare: () => bareBundle(size),
    cold: () => once((fresh) => fresh.load(specOf(size), context)),
    warm: async () => {
      const bundle = await loader.bundle(spec, context);
      await linkModule(bundle, { instance: `${size}-${instance++}`, timeout_s: 10, name: "bench" });
    },
    again: () => loader.load(spec, context),
  });
  const requests_before = requests;
  for (let round = 0; round < rounds; round++) await loader.load(spec, context);
  const cached_requests = requests - requests_before;
  await loader.close();
  rows.push([`${size} files`, bare, cold, cold / bare, warm, again, cached_requests]);
  figures[`files_${size}`] = { bare, cold, ratio: cold / bare, warm, again, cached_requests };
}
await new Promise((resolve) => setTimeout(resolve, IDLE_MS * 2));
const after_mb = await childrenMb();

print(`Modules by URL, ms, median of ${rounds} rounds`);
print(
  tableOf(
    ["", "bare bundle", "cold", "ratio", "cached, linked again", "again", "requests when cached"],
    rows,
  ),
);
print();
print(`first load, including the start of the bundler: ${first_ms.toFixed(0)} ms`);
print(
  `memory in MB: before ${mb(before_mb)}, after a load ${mb(loaded_mb)}, the bundler process ${
    mb(bundler_mb)
  }, after its idle timeout ${mb(after_mb)}`,
);
report("loader", { rounds, ...figures, first_ms, before_mb, loaded_mb, bundler_mb, after_mb });
await process.close();
await esbuild.stop();
await server.shutdown();

/** Adds a graph of TypeScript files, a tree with ten children for each file. */
function addGraph(size: number): void {
  for (let index = 0; index < size; index++) {
    const imports = children(index, size).map((child) => `import { f${child} } from "./${child}.ts";`).join(
      "\n",
    );
    const sum = children(index, size).map((child) => ` + f${child}(n)`).join("");
    const filler = Array.from(
      { length: 40 },
      (_, line) => `  // line ${line} of a file of ordinary length`,
    ).join("\n");
    const code =
      `${imports}\nexport function f${index}(n: number): number {\n${filler}\n  return n${sum};\n}\n`;
    files.set(
      `/${size}/${index}.ts`,
      index === 0 ? `${code}export const mount = (): number => f0(1);\n` : code,
    );
  }
}

/** Returns the children of a file in the tree. */
function children(index: number, size: number): number[] {
  return Array.from({ length: 10 }, (_, branch) => index * 10 + branch + 1).filter((child) => child < size);
}

/** Returns a module with a new URL, so that it is not cached. */
function specOf(size: number): LoadSpec {
  const url = `http://127.0.0.1:${server.addr.port}/${size}/0.ts?load=${loads++}`;
  return { module: "tool-bench", source: { kind: "url", url, original: url } };
}

async function once(use: (loader: TestLoader) => Promise<unknown>): Promise<void> {
  const loader = loaderOf({ bundler });
  await use(loader);
  await loader.close();
}

/** Bundles with a minimal loader that fetches the files that esbuild requests. */
async function bareBundle(size: number): Promise<void> {
  await esbuild.build({
    entryPoints: [`http://127.0.0.1:${server.addr.port}/${size}/0.ts`],
    bundle: true,
    write: false,
    format: "esm",
    sourcemap: "inline",
    logLevel: "silent",
    plugins: [{
      name: "http",
      setup(build: esbuild.PluginBuild) {
        build.onResolve({ filter: /.*/ }, ({ path, importer }) => ({
          path: importer ? new URL(path, importer).href : path,
          namespace: "http",
        }));
        build.onLoad({ filter: /.*/, namespace: "http" }, async ({ path }) => ({
          contents: await (await fetch(path)).text(),
          loader: "ts",
        }));
      },
    }],
  });
}

/** Resolves to the memory of the child processes, read from Linux's `/proc`; null on other systems. */
async function childrenMb(): Promise<number | null> {
  try {
    const pids = (await Deno.readTextFile(`/proc/${Deno.pid}/task/${Deno.pid}/children`)).split(" ").filter((
      pid,
    ) => pid.trim() !== "");
    const sizes = await Promise.all(pids.map((pid) => residentMb(Number(pid))));
    return sizes.reduce((sum: number, size) => sum + (size ?? 0), 0);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

function mb(value: number | null): string {
  return value === null ? "-" : value.toFixed(0);
}
