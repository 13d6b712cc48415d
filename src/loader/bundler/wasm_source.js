/**
 * esbuild's WebAssembly when this program runs from source. JavaScript, and never imported by name from TypeScript: neither the
 * type checker nor `deno bundle` can read a source-phase import, which gives the package's WebAssembly without any permission.
 */
import source wasm from "esbuild-wasm/esbuild.wasm";

export default wasm;
