/** The bundler child under `deno run`. JavaScript, and imported by nobody: see wasm_source.js. */
import { runBundlerChild } from "./bundler_child.ts";
import wasm from "./wasm_source.js";

await runBundlerChild(wasm);
