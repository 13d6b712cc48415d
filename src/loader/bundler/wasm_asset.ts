/**
 * Reads esbuild's WebAssembly in the compiled program: `esbuild.wasm.gz`, which the compile task puts next to the program's code. Under
 * `deno run`, `bundler_source.js` imports the package's own file instead.
 */

/** Name of the included file. */
export const WASM_ASSET = "esbuild.wasm.gz";

/** Resolves to the bytes of the WebAssembly module. @throws {Error} if the program was compiled without it. */
export async function includedWasm(base: string = import.meta.url): Promise<ArrayBuffer> {
  const file = await Deno.open(new URL(WASM_ASSET, base));
  return await new Response(file.readable.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
