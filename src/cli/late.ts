/**
 * What a server starts without. `deno run` reads the whole graph of a program before its first line, what is imported as it goes
 * too, as long as it finds the name in the text: that was half of the start from source. So these names are put together. Whoever
 * bundles (`deno task compile`) puts them together as well. Reading them needs `--allow-read`, which every command has.
 */

/** Routes and runtime. */
export function loadBackend(): Promise<typeof import("./backend.ts")> {
  return import("./backend" + ".ts");
}

/** The commands beside `serve`. */
export function loadOtherCommands(): Promise<typeof import("./other_commands.ts")> {
  return import("./other_commands" + ".ts");
}

/** The reader of documents, for a server that has a `preamp.yaml`. */
export function loadParser(): Promise<typeof import("../plan/parse.ts")> {
  return import("../plan/parse" + ".ts");
}

/** The server without our command line. */
export function loadEmbedded(): Promise<typeof import("./embedded.ts")> {
  return import("./embedded" + ".ts");
}

/** The children that the compiled program is itself. */
export function loadChildren(): Promise<typeof import("./children.ts")> {
  return import("./children" + ".ts");
}

/**
 * Names the packages of what is loaded later. Never called: `deno run` downloads what it finds named here before the first line
 * of the program, so that on an empty cache its progress does not overwrite what a started server has printed.
 */
export function packages(): Promise<unknown>[] {
  return [
    import("@cfworker/json-schema"),
    import("es-module-lexer"),
    import("esbuild-wasm/esm/browser.js"),
    import("gpt-tokenizer/encoding/o200k_base"),
    import("hono/hono-base"),
    import("js-yaml"),
    import("zod"),
  ];
}
