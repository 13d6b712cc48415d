/** First file of the bundler's process under `deno run`. JavaScript for the reason in wasm_source.js. */
import { runBundlerChild } from "./bundler_child.ts";
import wasm from "./wasm_source.js";

await runBundlerChild(wasm);
