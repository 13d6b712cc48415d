/** Finds what is assigned to the top-level names of a module, also inside of its functions. Follows the scopes of ECMA-262. */
import type { AnyNode, Expression, Pattern, Program } from "acorn";

interface Scope {
  readonly names: Set<string>;
  readonly parent: Scope | null;
  /** Scope of `var` declarations. */
  readonly owner: Scope;
}

interface Write {
  readonly scope: Scope;
  readonly value: Expression | null;
}

/** Assignments of a module by the names of their targets. */
export class TopLevelWrites {
  readonly #top = newScope(null, true);
  readonly #writes = new Map<string, Write[]>();

  constructor(program: Program) {
    const statements = new Set<AnyNode>(program.body.flatMap(directWrites));
    // a list, not recursion: a long expression is a deep tree
    const nodes: AnyNode[] = [program];
    const scopes: Scope[] = [this.#top];
    for (let node = nodes.pop(); node; node = nodes.pop()) {
      const outer = scopes.pop()!; // as many as nodes
      const scope = scopeOf(node, outer);
      declare(node, scope, outer);
      for (const [target, value] of writesOf(node)) {
        const known = target.type === "Identifier" && statements.has(node) ? value : null;
        for (const name of namesOf(target)) this.#add(name, { scope, value: known });
      }
      for (const value of Object.values(node) as unknown[]) {
        for (const child of Array.isArray(value) ? value : [value]) {
          if (!isNode(child)) continue;
          nodes.push(child);
          scopes.push(scope);
        }
      }
    }
  }

  /**
   * Returns what is assigned to a top-level name if that is a single value in a statement of the module. Undefined if it is assigned
   * more than once, elsewhere, by a pattern or by an operator.
   */
  value(name: string): Expression | undefined {
    const of_top = new Map<Scope, boolean>(); // perf: a hostile bundle has many writes in deep scopes
    let found: Expression | null = null;
    for (const { scope, value } of this.#writes.get(name) ?? []) {
      let is_top = of_top.get(scope);
      if (is_top === undefined) of_top.set(scope, is_top = scopeWith(name, scope, this.#top) === this.#top);
      if (!is_top) continue;
      if (found || !value) return undefined;
      found = value;
    }
    return found ?? undefined;
  }

  #add(name: string, write: Write): void {
    const writes = this.#writes.get(name);
    if (writes) writes.push(write);
    else this.#writes.set(name, [write]);
  }
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

/** Returns the scope of a node's children: a new one, or that of the node. */
function scopeOf(node: AnyNode, scope: Scope): Scope {
  switch (node.type) {
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
    case "StaticBlock":
      return newScope(scope, true);
    case "BlockStatement":
    case "CatchClause":
    case "ClassExpression":
    case "ForStatement":
    case "ForInStatement":
    case "ForOfStatement":
    case "SwitchStatement":
      return newScope(scope, false);
    default:
      return scope;
  }
}

/** Adds the names that a node declares, to the scope of its children or to that around it. */
function declare(node: AnyNode, inner: Scope, outer: Scope): void {
  const add = (scope: Scope, pattern: Pattern | null | undefined) => {
    if (pattern) { for (const name of namesOf(pattern)) scope.names.add(name); }
  };
  switch (node.type) {
    case "VariableDeclaration":
      for (const { id } of node.declarations) add(node.kind === "var" ? inner.owner : inner, id);
      break;
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      add(node.type === "FunctionDeclaration" ? outer : inner, node.id);
      for (const parameter of node.params) add(inner, parameter);
      break;
    case "ClassDeclaration":
    case "ClassExpression":
      add(inner, node.id);
      break;
    case "CatchClause":
      add(inner, node.param);
      break;
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

function newScope(parent: Scope | null, owns_var: boolean): Scope {
  const scope = { names: new Set<string>(), parent, owner: parent?.owner as Scope };
  if (owns_var || !parent) scope.owner = scope;
  return scope;
}

/** Returns the innermost scope that declares a name; the module's for an undeclared one. */
function scopeWith(name: string, scope: Scope, top: Scope): Scope {
  for (let at: Scope | null = scope; at; at = at.parent) if (at.names.has(name)) return at;
  return top;
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null &&
    typeof (value as { type?: unknown }).type === "string";
}
