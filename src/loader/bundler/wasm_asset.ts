/**
 * esbuild's WebAssembly inside the compiled program: `esbuild.wasm.gz`, put beside the program's own code by the compile
 * task. Under `deno run` the package's own file is imported instead (bundler_source.js).
 */

/** Name of the included file. */
export const WASM_ASSET = "esbuild.wasm.gz";

/** Resolves to the bytes of the module. @throws {Error} when the program was compiled without it. */
export async function includedWasm(base: string = import.meta.url): Promise<ArrayBuffer> {
  const file = await Deno.open(new URL(WASM_ASSET, base));
  return await new Response(file.readable.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
