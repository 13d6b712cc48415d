/** Requests to the servers of a plan: only to the hosts of its grant, without redirects, with a maximum. */
import { type GrantedPermissions, isHostGranted } from "preamp/base";

/**
 * Returns a `fetch` for one server.
 *
 * @param max_bytes Most bytes of one answer.
 */
export function fetchWithin(
  net: GrantedPermissions["net"],
  max_bytes: number,
): (url: string | URL, init?: RequestInit) => Promise<Response> {
  return async (address, init) => {
    const url = new URL(address);
    if (!isHostGranted(net, url)) throw new Error(`The plan does not grant net to ${url.host}`);
    // answers arrive with the requests; a stream besides them would only stay open
    if ((init?.method ?? "GET") === "GET") return new Response(null, { status: 405 });
    const response = await fetch(url, { ...init, redirect: "manual" });
    if (response.status >= 300 && response.status < 400) {
      await response.body?.cancel();
      const to = response.headers.get("location") ?? "elsewhere";
      throw new Error(`${url.host} redirects to ${to.slice(0, 200)}: write that address into the plan`);
    }
    return bounded(response, max_bytes);
  };
}

function bounded(response: Response, max_bytes: number): Response {
  if (response.body === null) return response;
  let bytes = 0;
  const counted = response.body.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        bytes += chunk.length;
        if (bytes > max_bytes) controller.error(new Error(`The answer has more than ${max_bytes} bytes`));
        else controller.enqueue(chunk);
      },
    }),
  );
  return new Response(counted, response);
}
