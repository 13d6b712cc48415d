/**
 * esbuild's WebAssembly, compiled. JavaScript, because the type checker cannot read a source-phase import.
 */
import source wasm from "esbuild-wasm/esbuild.wasm";

export default wasm;
