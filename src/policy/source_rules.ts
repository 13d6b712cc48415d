/**
 * Decides from which URLs a plan's modules may be loaded: by scheme and origin of the plan, allow-list, and
 * private addresses (src/docs/security.md). Called for the entry, each import, each redirect, and each
 * address before a connection. Pure: the caller resolves names.
 */
import { addressKind } from "../sdk/http/ip_address.ts";
import type { Origin, Policy } from "./policy.ts";
import { DEFAULT_ESM_HOST, NO_ESM_HOST } from "../plan/source/source.ts";

/** Rules for the URLs of one module. */
export interface SourceRules {
  /** Author of the plan. */
  readonly origin: Origin;
  /** URL prefixes that callers' plans may load from. */
  readonly allow: readonly string[];
  /** Private and loopback hosts that may be reached. */
  readonly private_hosts: readonly string[];
  /** The module's URL in the plan. An operator's plan thereby allows its private host or port. */
  readonly entry: URL;
}

/** Use of a URL. */
export interface SourceUse {
  /** Named by the plan, imported by a file, or the target of a redirect. */
  readonly as: "entry" | "import" | "redirect";
  /** The importing file, or the URL that redirected. */
  readonly from?: URL;
}

/** Reason why a URL may not be loaded, as the second half of "Cannot load <url>: …". */
export interface SourceProblem {
  readonly fact: string;
  readonly hint: string;
}

/** Returns the rules for a module of a plan. */
export function sourceRules(origin: Origin, policy: Pick<Policy, "modules">, entry: URL): SourceRules {
  return {
    origin,
    allow: policy.modules.allow,
    private_hosts: [...policy.modules.private_hosts, ...ownEsmHost(policy.modules)],
    entry,
  };
}

/**
 * Returns the host of packages if the operator chose it, because it may be private. The default host may
 * not become private.
 */
function ownEsmHost({ esm_host }: Policy["modules"]): string[] {
  return esm_host === NO_ESM_HOST || esm_host === DEFAULT_ESM_HOST ? [] : [new URL(esm_host).host];
}

/** Returns why a URL may not be loaded, before any packet is sent; undefined if it may. */
export function sourceProblem(url: URL, use: SourceUse, rules: SourceRules): SourceProblem | undefined {
  if (url.username !== "" || url.password !== "") {
    return problem(
      "it contains a user name or password",
      "pass credentials to a module through config and ${VAR}",
    );
  }
  switch (url.protocol) {
    case "https:":
    case "http:":
      return webProblem(url, use, rules);
    case "file:":
      return fileProblem(url, use, rules);
    case "data:":
      return dataProblem(use, rules);
    default:
      return problem(
        `${url.protocol} is not supported`,
        use.as === "import"
          ? "import ES modules by URL, such as https://esm.sh/NAME@VERSION"
          : "use an https:// URL",
      );
  }
}

/**
 * Returns why an address of a URL's host may not be connected to; undefined if it may. The caller checks
 * every address of a host and refuses the host if one is refused.
 */
export function addressProblem(url: URL, address: string, rules: SourceRules): SourceProblem | undefined {
  const kind = addressKind(address);
  if (kind !== "invalid") {
    if (namesHost(url, rules.private_hosts)) {
      return kind === "public" && url.protocol === "http:" ? PUBLIC_HTTP : undefined;
    }
    const own = rules.origin === "operator" && url.host === rules.entry.host &&
      url.protocol === rules.entry.protocol;
    if (own && kind === "loopback") return undefined;
    if (own || kind === "public") return url.protocol === "https:" ? undefined : PLAIN_HTTP;
  }
  const article = kind === "invalid" ? "an" : "a";
  return problem(
    `its host has ${article} ${kind} address`,
    "use a host with a public address, or have the operator name it in modules.private_hosts",
  );
}

/**
 * Returns true if the policy trusts a URL's code like the program's own (`modules.inline`). The `file://` URL
 * of a file is no prefix.
 */
export function isTrustedInline(text: string, { modules }: Pick<Policy, "modules">): boolean {
  const url = URL.parse(text);
  if (url === null) return false;
  const prefixes = modules.inline.filter((one) => !/^file:.*[^/]$/i.test(one) || one === url.href);
  return matchesPrefix(url, prefixes) && !mayClimb(url.pathname);
}

/**
 * Returns true if a plan of the operator trusts exactly these bytes of a module like the program's own: it
 * says `isolation: inline` beside their digest, as `preamp plan vendor --inline` writes it.
 */
export function isPinnedInline(
  { integrity, isolation }: { integrity?: string; isolation?: string },
  origin: Origin,
): boolean {
  return origin === "operator" && isolation === "inline" && integrity !== undefined;
}

function webProblem(url: URL, use: SourceUse, rules: SourceRules): SourceProblem | undefined {
  if (use.as === "redirect" && use.from?.protocol === "https:" && url.protocol === "http:") {
    return problem("a redirect leads from https to http", "use an https:// URL that redirects to https only");
  }
  if (rules.origin === "caller") {
    if (!matchesPrefix(url, rules.allow)) return notAllowed(use, rules);
    if (mayClimb(url.pathname)) {
      return problem("its path contains an encoded slash or dots", "write the path without %2F, %5C or %2E");
    }
  }
  const address = isLoopbackName(url.hostname) ? "127.0.0.1" : url.hostname;
  const is_address = addressKind(address) !== "invalid";
  const refused = is_address ? addressProblem(url, address, rules) : undefined;
  if (refused || namesHost(url, rules.private_hosts)) return refused;
  return url.protocol === "http:" && !is_address ? PLAIN_HTTP : portProblem(url, rules);
}

/**
 * Allows port 443 and ports that plan or policy name, so that a module cannot scan ports through its
 * imports.
 */
function portProblem(url: URL, rules: SourceRules): SourceProblem | undefined {
  const port = url.port || defaultPort(url.protocol);
  const known = port === "443" || url.host === rules.entry.host ||
    rules.origin === "caller" || matchesPrefix(url, rules.allow);
  return known ? undefined : problem(
    `neither the plan nor the policy names port ${port}`,
    "use port 443, or have the operator name the host in modules.private_hosts",
  );
}

/** Allows files in the operator's plan and in files, never in code that came over the network. */
function fileProblem(url: URL, use: SourceUse, rules: SourceRules): SourceProblem | undefined {
  if (rules.origin === "caller") {
    return problem("a request may not name files of this machine", "use an https:// URL");
  }
  if (url.host !== "") return problem("a file: URL must not have a host", "write file:///path");
  if (use.as === "entry" || (use.as === "import" && use.from?.protocol === "file:")) return undefined;
  return problem("only files may import files", "import it by its https:// URL");
}

/**
 * Allows inline code. In a caller's plan the policy must list it; inside a module it is part of that
 * module's bytes.
 */
function dataProblem(use: SourceUse, rules: SourceRules): SourceProblem | undefined {
  if (use.as === "redirect") return problem("a redirect may not lead to data:", "serve the file itself");
  if (use.as === "import" || rules.origin === "operator" || rules.allow.includes("data:")) return undefined;
  return problem('the policy does not list "data:" in modules.allow', allowed(rules));
}

function notAllowed(use: SourceUse, rules: SourceRules): SourceProblem {
  const reason = use.as === "redirect"
    ? "a redirect leads outside of modules.allow"
    : use.as === "import"
    ? "an import leads outside of modules.allow"
    : "the policy does not list it in modules.allow";
  return problem(reason, allowed(rules));
}

function allowed(rules: SourceRules): string {
  return rules.allow.length === 0
    ? "the policy allows no URLs in requests: use built-in modules, or a plan of the operator"
    : "use a built-in module, or a source that the operator allows";
}

const PLAIN_HTTP = problem("http: is for loopback and modules.private_hosts only", "use the https:// URL");
const PUBLIC_HTTP = problem("its host has a public address, which needs https:", "use the https:// URL");

function problem(fact: string, hint: string): SourceProblem {
  return { fact, hint };
}

/**
 * Returns true if `url` is below one of the prefixes: same scheme, host and port, and a path that equals
 * the prefix or continues it at a slash. `https://h/agents` covers `/agents/mod.ts` and not
 * `/agents-of-others/mod.ts`.
 */
export function matchesPrefix(url: URL, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => {
    if (prefix === url.protocol) return true; // a bare scheme, such as data:
    const base = URL.parse(prefix);
    if (base?.protocol !== url.protocol || base.host !== url.host || url.protocol === "data:") return false;
    return url.pathname === base.pathname || url.pathname.startsWith(base.pathname.replace(/\/?$/, "/"));
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
    const decoded = path.replaceAll("%25", "%").replaceAll(/%2e/gi, ".");
    if (decoded === path) return false;
    path = decoded;
  }
  return true; // encoded more than twice: no legitimate URL
}

/**
 * Returns true if an entry (`host` or `host:port`) of a list matches the URL's host. An entry without a
 * port matches every port.
 */
export function namesHost(url: URL, entries: readonly string[]): boolean {
  const host = bareHost(url.hostname);
  const port = url.port || defaultPort(url.protocol);
  return entries.some((entry) => {
    const [name, entry_port = port] = splitHost(entry);
    const entry_url = URL.parse(`http://${name}/`);
    return entry_url !== null && bareHost(entry_url.hostname) === host && entry_port === port;
  });
}

/** Returns the default port of a scheme; empty if it has none. */
export function defaultPort(protocol: string): string {
  return protocol === "https:" ? "443" : protocol === "http:" ? "80" : "";
}

/** Returns true for names that mean this machine by definition (RFC 6761 §6.3). */
function isLoopbackName(hostname: string): boolean {
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
