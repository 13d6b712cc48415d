/**
 * Compares URLs with the prefixes and host names of the policy, after normalisation by the URL parser.
 * Pure.
 */

/**
 * Returns true if `url` is below one of the prefixes: same scheme, host and port, and a path that equals
 * the prefix or continues it at a slash. `https://h/agents` covers `/agents/mod.ts` and not
 * `/agents-of-others/mod.ts`.
 */
export function matchesPrefix(url: URL, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => {
    if (prefix === url.protocol) return true; // a bare scheme, such as data:
    if (!URL.canParse(prefix)) return false;
    const { protocol, host, pathname } = new URL(prefix);
    if (protocol !== url.protocol || host !== url.host || url.protocol === "data:") return false;
    return url.pathname === pathname ||
      url.pathname.startsWith(pathname.endsWith("/") ? pathname : `${pathname}/`);
  });
}

/**
 * Returns true if a path may leave its folder when a server decodes it: an encoded slash, backslash or
 * `..`, also encoded twice. The URL parser has resolved unencoded ones.
 */
export function mayClimb(pathname: string): boolean {
  let path = pathname;
  for (let round = 0; round < 3; round++) {
    if (/%2f|%5c|%00|\\/i.test(path) || path.split("/").includes("..")) return true;
    const decoded = decodePercent(path);
    if (decoded === path) return false;
    path = decoded;
  }
  return true; // encoded more than twice: no legitimate URL
}

/** Decodes `%25`, `%2e` and `%2f`, the only escapes that change the meaning of a path. */
function decodePercent(path: string): string {
  return path.replaceAll(/%25/g, "%").replaceAll(/%2e/gi, ".");
}

/**
 * Returns true if an entry (`host` or `host:port`) of a list matches the URL's host. An entry without a
 * port matches every port.
 */
export function namesHost(url: URL, entries: readonly string[]): boolean {
  const host = bareHost(url.hostname);
  const port = url.port || defaultPort(url.protocol);
  return entries.some((entry) => {
    const [name, entryPort] = splitHost(entry);
    if (!URL.canParse(`http://${name}/`)) return false;
    return bareHost(new URL(`http://${name}/`).hostname) === host &&
      (entryPort === undefined || entryPort === port);
  });
}

/** Returns the default port of a scheme; empty if it has none. */
export function defaultPort(protocol: string): string {
  return protocol === "https:" ? "443" : protocol === "http:" ? "80" : "";
}

/** Returns true for names that mean this machine by definition (RFC 6761 §6.3). */
export function isLoopbackName(hostname: string): boolean {
  const host = bareHost(hostname);
  return host === "localhost" || host.endsWith(".localhost");
}

/** Removes the dot at the end of a host name, which does not change its meaning. */
function bareHost(hostname: string): string {
  return hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
}

/**
 * Splits a port off by hand, because the URL parser drops a default port, and an entry without a port
 * matches every port.
 */
function splitHost(entry: string): [host: string, port?: string] {
  const end = entry.lastIndexOf("]");
  const colon = entry.lastIndexOf(":");
  if (colon <= end || (end === -1 && entry.indexOf(":") !== colon)) return [entry];
  return [entry.slice(0, colon), String(Number(entry.slice(colon + 1)))];
}
