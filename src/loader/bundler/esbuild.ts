/** Starts esbuild, which is WebAssembly. */
import type * as Esbuild from "esbuild-wasm/esm/browser.js";

/**
 * Name of the WebAssembly in the compiled program, gzipped: the compile task puts it next to the program's code. Under `deno run`,
 * `wasm_source.js` imports the package's own file instead.
 */
const WASM_ASSET = "esbuild.wasm.gz";

/** Loads and initialises esbuild on this thread. */
export async function startEsbuild(wasm: WebAssembly.Module | BufferSource): Promise<typeof Esbuild> {
  const wasmModule = wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(wasm);
  const esbuild = await import("esbuild-wasm/esm/browser.js");
  await esbuild.initialize({ wasmModule, worker: false });
  return esbuild;
}

/** Resolves to the WebAssembly in the compiled program. @throws {Error} if it was compiled without it. */
export async function includedWasm(): Promise<ArrayBuffer> {
  const file = await Deno.open(new URL(WASM_ASSET, import.meta.url));
  return await new Response(file.readable.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
