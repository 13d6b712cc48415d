/**
 * Reads a module's declaration (`export const module = {…}`) from its bundle without executing it. Only
 * literals, and constants that are assigned one, can be read; anything else is unknown and never guessed.
 * Later changes of the object are not seen. The declaration only lists wanted permissions: the plan grants
 * them (src/docs/security.md).
 */
import { type AnyNode, type Expression, Parser, type Pattern, type Program, type Property } from "acorn";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { splitMap } from "./source_map.ts";

/** Most characters of a bundle whose declaration is read. A hostile one of this length takes five seconds. */
const MAX_CHARS = 1024 * 1024;
/** Deepest nesting of lists, objects and constants. */
const MAX_DEPTH = 32;
/** Most values of a declaration, each as often as it is referred to. */
const MAX_VALUES = 256 * 1024;

/** Marks a value that would have to be computed. */
const UNKNOWN: unique symbol = Symbol("unknown");

/** The readable part of a declaration. */
export interface Declared {
  readonly fields: JsonObject;
  /** Names of fields that would have to be computed. */
  readonly unread: readonly string[];
}

/** Declaration of a module without an export `module`. */
export const NOTHING_DECLARED: Declared = { fields: {}, unread: [] };

/**
 * Returns the module's declaration; null if it is not a literal, or the code is too long or cannot be parsed.
 */
export function readDeclared(code: string, max_chars = MAX_CHARS): Declared | null {
  const text = splitMap(code).code;
  const program = text.length > max_chars ? undefined : parseModule(text);
  const name = program && localName(program);
  if (program === undefined || name === undefined) return null;
  const value = new Constants(program).value(name, 0);
  if (!isObject(value)) return null;
  const entries = Object.entries(value);
  return {
    fields: Object.fromEntries(entries.filter(([, field]) => isKnown(field))),
    unread: entries.filter(([, field]) => !isKnown(field)).map(([name]) => name),
  };
}

/**
 * Parser without the check for names that are declared twice: its time is quadratic, and V8 makes it before
 * such code runs.
 */
class LinearParser extends Parser {
  declareName(): void {}
  checkLocalExport(): void {}
}

function parseModule(text: string): Program | undefined {
  try {
    return LinearParser.parse(text, { ecmaVersion: "latest", sourceType: "module" });
  } catch {
    return undefined; // not a module, or nested too deeply
  }
}

/** Returns whether a value has no unknown part. */
function isKnown(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isKnown);
  return isObject(value) ? Object.values(value).every(isKnown) : value !== UNKNOWN;
}

/** Returns the local name of the export `module`. */
function localName({ body }: Program): string | undefined {
  for (const statement of body) {
    if (statement.type !== "ExportNamedDeclaration" || statement.source) continue;
    for (const { exported, local } of statement.specifiers) {
      if (nameOf(exported) === "module") return nameOf(local);
    }
    const { declaration } = statement;
    if (declaration?.type !== "VariableDeclaration") continue;
    if (declaration.declarations.some(({ id }) => nameOf(id) === "module")) return "module";
  }
  return undefined;
}

/** Returns the name of an identifier, and the text of a literal. */
function nameOf(node: AnyNode): string | undefined {
  return node.type === "Identifier" ? node.name : node.type === "Literal" ? String(node.value) : undefined;
}

/** Constants of a bundle. */
class Constants {
  readonly #constants: ReadonlyMap<string, Expression | null>;
  #values = 0;

  constructor(program: Program) {
    this.#constants = constantsOf(program);
  }

  /** Returns the literal value of a name, or {@link UNKNOWN}. */
  value(name: string, depth: number): unknown {
    const value = this.#constants.get(name);
    return value ? this.#evaluate(value, depth) : UNKNOWN;
  }

  #evaluate(node: Expression, depth: number): unknown {
    if (depth > MAX_DEPTH || ++this.#values > MAX_VALUES) return UNKNOWN;
    switch (node.type) {
      case "Literal":
        return node.value === null && !node.regex || isPlain(node.value) ? node.value : UNKNOWN;
      case "TemplateLiteral":
        return node.expressions.length === 0 ? node.quasis[0]?.value.cooked ?? UNKNOWN : UNKNOWN;
      case "UnaryExpression": {
        const value = this.#evaluate(node.argument, depth + 1);
        if (node.operator === "-" && typeof value === "number") return -value;
        return node.operator === "!" && (value === 0 || value === 1) ? value === 0 : UNKNOWN; // booleans of minifiers
      }
      case "Identifier":
        return this.value(node.name, depth + 1);
      case "ArrayExpression":
        return node.elements.map((item) =>
          item && item.type !== "SpreadElement" ? this.#evaluate(item, depth + 1) : UNKNOWN
        );
      case "ObjectExpression":
        return this.#object(node.properties.filter((field) => field.type === "Property"), node, depth);
      default:
        return UNKNOWN;
    }
  }

  /**
   * Returns an object, unless it has a spread, a computed key or an accessor. A field `__proto__` is data.
   */
  #object(fields: readonly Property[], { properties }: { properties: unknown[] }, depth: number): unknown {
    if (fields.length < properties.length) return UNKNOWN;
    const object: JsonObject = {};
    for (const { key, computed, kind, value } of fields) {
      const name = nameOf(key);
      if (computed || kind !== "init" || name === undefined) return UNKNOWN;
      Object.defineProperty(object, name, {
        value: this.#evaluate(value, depth + 1),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    return object;
  }
}

function isPlain(value: unknown): boolean {
  return typeof value === "string" || typeof value === "boolean" ||
    typeof value === "number" && Number.isFinite(value);
}

/**
 * Returns the values of names that a statement of the module assigns; null for those that are assigned twice,
 * elsewhere, by a pattern or by an operator. Scopes do not matter: esbuild renames what would hide a name of
 * the module.
 */
function constantsOf(program: Program): Map<string, Expression | null> {
  const statements = new Set<AnyNode>(program.body.flatMap(directWrites));
  const values = new Map<string, Expression | null>();
  const open: AnyNode[] = [program]; // a list, not recursion: a long expression is a deep tree
  for (let node = open.pop(); node; node = open.pop()) {
    for (const [target, value] of writesOf(node)) {
      const known = target.type === "Identifier" && statements.has(node) ? value : null;
      for (const name of namesOf(target)) values.set(name, values.has(name) ? null : known);
    }
    for (const value of Object.values(node) as unknown[]) {
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) open.push(child);
    }
  }
  return values;
}

/** Returns the declarators and assignments that are statements of the module. */
function directWrites(statement: Program["body"][number]): AnyNode[] {
  if (statement.type === "ExpressionStatement") return [statement.expression];
  const declared = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
  return declared?.type === "VariableDeclaration" ? declared.declarations : [];
}

/** Returns the targets that a node assigns, with their values; null for a computed one. */
function writesOf(node: AnyNode): [Pattern, Expression | null][] {
  switch (node.type) {
    case "VariableDeclarator":
      return node.init ? [[node.id, node.init]] : [];
    case "AssignmentExpression":
      return [[node.left, node.operator === "=" ? node.right : null]];
    case "UpdateExpression":
      return node.argument.type === "Identifier" ? [[node.argument, null]] : [];
    case "ForInStatement":
    case "ForOfStatement":
      if (node.left.type !== "VariableDeclaration") return [[node.left, null]];
      return node.left.declarations.map(({ id }) => [id, null]);
    default:
      return [];
  }
}

/** Returns the names of a target. */
function namesOf(pattern: Pattern): string[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern.name];
    case "ObjectPattern":
      return pattern.properties.flatMap((field) => namesOf(field.type === "Property" ? field.value : field));
    case "ArrayPattern":
      return pattern.elements.flatMap((item) => item ? namesOf(item) : []);
    case "AssignmentPattern":
      return namesOf(pattern.left);
    case "RestElement":
      return namesOf(pattern.argument);
    default:
      return []; // a field of an object
  }
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null &&
    typeof (value as { type?: unknown }).type === "string";
}
