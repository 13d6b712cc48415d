/** Where in the author's file an error was thrown: `error.at` of `tool:error` (modules.md, Loading 6). Pure. */

/**
 * Returns `<url>:<line>:<column>` of the innermost frame of an error's stack that lies in one of the files, or undefined.
 * Deno applies the bundle's source map to stacks itself, under `deno run` and in the compiled program alike.
 */
export function errorPlace(error: unknown, files: readonly { url: string }[]): string | undefined {
  const stack = typeof error === "object" && error !== null
    ? (error as { stack?: unknown }).stack
    : undefined;
  if (typeof stack !== "string") return undefined;
  const urls = new Set(files.map(({ url }) => url));
  for (const line of stack.slice(0, 20_000).split("\n")) {
    const place = placeOf(line.trim());
    if (place && urls.has(place.url)) return `${place.url}:${place.line}:${place.column}`;
  }
  return undefined;
}

/** A frame is `at NAME (URL:LINE:COLUMN)` or `at URL:LINE:COLUMN`; a URL may hold colons and parentheses itself. */
function placeOf(frame: string): { url: string; line: number; column: number } | undefined {
  if (!frame.startsWith("at ")) return undefined;
  const open = frame.indexOf(" (");
  const text = frame.endsWith(")") && open !== -1 ? frame.slice(open + 2, -1) : frame.slice("at ".length);
  const columnAt = text.lastIndexOf(":");
  const lineAt = text.lastIndexOf(":", columnAt - 1);
  const line = Number(text.slice(lineAt + 1, columnAt));
  const column = Number(text.slice(columnAt + 1));
  if (lineAt < 1 || !Number.isInteger(line) || !Number.isInteger(column) || line < 1) return undefined;
  const url = text.slice(0, lineAt);
  return { url: url.startsWith("async ") ? url.slice("async ".length) : url, line, column };
}
