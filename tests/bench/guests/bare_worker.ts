/** The floor of a guest: a worker that answers every text with itself, or with as many bytes as `size` asks for. */

/** Asks for an answer of so many bytes. */
const SIZED = /^size (\d+)$/;

let sized = "";

addEventListener("message", (event) => {
  const { data } = event as MessageEvent<string>;
  const size = Number(SIZED.exec(data)?.[1] ?? 0);
  if (sized.length !== size) sized = "x".repeat(size);
  postMessage(size > 0 ? sized : data);
});

// the type is Deno's main library's, which this file is checked with; in a worker `postMessage` takes one argument
declare function postMessage(message: unknown): void;
