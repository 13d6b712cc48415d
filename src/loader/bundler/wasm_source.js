/**
 * Imports esbuild's WebAssembly when the program runs from source. JavaScript, because neither the type
 * checker nor `deno bundle` can read a source-phase import, which loads the package's WebAssembly without a
 * permission.
 */
import source wasm from "esbuild-wasm/esbuild.wasm";

export default wasm;
