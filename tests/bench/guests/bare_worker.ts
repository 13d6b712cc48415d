/** The floor of a guest: a worker that returns each text, or `N` bytes for the text `size N`. */

/** A request for an answer of a number of bytes. */
const SIZED = /^size (\d+)$/;

let sized = "";

addEventListener("message", (event) => {
  const { data } = event as MessageEvent<string>;
  const size = Number(SIZED.exec(data)?.[1] ?? 0);
  if (sized.length !== size) sized = "x".repeat(size);
  postMessage(size > 0 ? sized : data);
});

// this file is checked with the types of the main thread; in a worker `postMessage` takes one argument
declare function postMessage(message: unknown): void;
