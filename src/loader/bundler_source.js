/**
 * The bundler child under `deno run`. JavaScript, and imported by nobody: neither the type checker nor `deno bundle` can read
 * a source-phase import, which gives the package's WebAssembly without any permission.
 */
import source wasm from "esbuild-wasm/esbuild.wasm";
import { runBundlerChild } from "./bundler_child.ts";

await runBundlerChild(wasm);
