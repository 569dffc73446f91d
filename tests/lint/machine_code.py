"""tests/lint/machine_code.py [--quiet | --write] [LIBRARY]: what the machine code of the plugin cuda promises of its kernels, family
by family, beside machine_code.toml.

A figure that is its goal is a gate: it fails when it worsens. One that is not yet ("not reached") must not worsen, and when it
improves the table is written anew (--write), so that it only improves. A figure counts kernels that are not as wanted.

A stack is counted where the kernel's own code has it, or a function of ours that it calls. What a function of one element saves
that is a call by itself is not counted: those of the toolkit, and of abi/kit those of complex numbers and the special ones.
"""

import hashlib
import json
import os
import pathlib
import re
import sys
import tomllib
import zlib

import sass

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "machine_code.toml"
TREE = pathlib.Path(os.environ.get("ADJOIN_TREE", "build/release"))
PLAIN = ("binary", "compare", "math", "pieces", "special", "unary")  # sources of functions of elements
HOT = ("pointwise", "reduce", "softmax", "norm", "attention", "product", "convolution", "copy", "optimizer", "rnn")
PRODUCTS = ("product", "convolution", "attention")
SUMS = re.compile(r"\bbias_sum_kernel<|\bDots<")  # of the families of products, but no products of matrices
HALVES = re.compile(r"\b(?:Half|BFloat16)\b")
OF_ELEMENTS = re.compile(r"\badjoin::kit::scalar(?:_complex)?::")  # functions of abi/kit of one element
CONTIGUOUS = re.compile(r"\bflat_kernel<")
OWN_DIVISION = re.compile(r"Divide|Remainder|FMod|Gcd|Lcm|Integers")  # the op is a division of its elements
MOVE = re.compile(r"\bMove<(.+?)>,")
NAMES = {
    "bool": "bool", "unsigned char": "uint8", "signed char": "int8", "short": "int16", "int": "int32", "long": "int64",
    "unsigned short": "uint16", "unsigned int": "uint32", "unsigned long": "uint64", "float": "float32", "double": "float64",
    "Half": "float16", "BFloat16": "bfloat16", "Complex<float>": "complex64", "Complex<double>": "complex128",
}  # fmt: skip
ONE, ALL = 12.0, 60.0  # MB of a package for one architecture and for several
MEASURES = {
    "stack": "kernels that keep something on a stack: what registers do not hold, arrays, frames of calls",
    "local_memory": "kernels whose loops read or write local memory: spills, arrays",
    "narrow": "contiguous kernels of a dtype without loads and stores of 16 bytes, or functions that have none for it",
    "few_loads": "kernels of reductions with fewer than 4 loads on their way in every loop, and none of 16 bytes",
    "no_matrix_unit": "kernels of halves without a loop of tensor-core instructions alone",
    "division": "kernels that divide by 64 bits in a loop, where a prepared divisor would do",
    "megabytes": "the package, compressed",
}


def family(function):
    return "pointwise" if function["source"] in PLAIN else function["source"]


def arguments(name):
    """The template arguments of a kernel."""
    found, depth = [""], 0
    for sign in name[name.index("<") + 1 :]:
        if sign == ">" and depth == 0:
            break
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [each.strip().removeprefix("adjoin::kit::") for each in found]


def reads_nothing(each):
    """Where the result does not depend on what is there: the loop that writes 16 bytes has no load."""
    return not each["loads"] or any(loop["store_bytes"] >= 16 and not loop["load_bytes"] for loop in each["loops"])


def narrow(kernels):
    """{dtype: (kernels that are not as wanted, of how many)}; a function that floats have is wanted for halves too."""
    there = {}  # dtype: {(function, result): whether its kernel is as wanted}
    for each in kernels:
        if CONTIGUOUS.search(each["name"]) and not MOVE.search(each["name"]):
            function, result, dtype, _, computed = arguments(each["name"])
            wide = (each["loads_wide"] or reads_nothing(each)) and each["stores_wide"]
            function = re.sub(rf"(?:\w+::)*{re.escape(computed)}", "T", function), result if result != dtype else "T"
            there.setdefault(NAMES.get(dtype, dtype), {})[function] = wide
    found = {}
    for dtype, functions in there.items():
        found[dtype] = sum(not wide for wide in functions.values()), len(functions)
    wanted = set(there.get("float32", ()))
    for dtype in ("float16", "bfloat16"):
        functions = there.get(dtype, {})
        if wanted:
            found[dtype] = sum(not functions.get(name) for name in wanted), len(wanted)
    return found


def without_templates(name):
    """A function's name without what stands in angle brackets."""
    while (less := re.sub(r"<[^<>]*>", "", name)) != name:
        name = less
    return name


def keeps_stack(each):
    ours = [name for name in map(without_templates, each["framed"]) if "adjoin::" in name]
    if any(not OF_ELEMENTS.search(name.split("(")[0]) for name in ours):
        return True
    return each["frame"] or (each["stack"] and not each["framed"])  # nobody knows whose


def few_loads(each):
    return not any(loop["loads"] >= 4 or loop["wide"] for loop in each["loops"])


def divides(each):
    return each["divides_in_loops"] and not OWN_DIVISION.search(each["name"])


def no_matrix_unit(each):
    return not any(loop["matrix"] and not loop["plain"] for loop in each["loops"])


def figures(functions):
    """{measure: {family or dtype: (kernels that are not as wanted, of how many)}} for an architecture."""
    kernels = [each for each in functions if each["kernel"]]
    families = {}
    for each in kernels:
        families.setdefault(family(each), []).append(each)
    count = lambda wrong, group: (sum(bool(wrong(each)) for each in group), len(group))  # noqa: E731
    hot = {name: families[name] for name in HOT if name in families}
    halves = {
        name: [each for each in families.get(name, ()) if HALVES.search(each["name"]) and not SUMS.search(each["name"])]
        for name in PRODUCTS
    }
    moves = [each for each in kernels if MOVE.search(each["name"]) and CONTIGUOUS.search(each["name"])]
    return {
        "stack": {name: count(keeps_stack, group) for name, group in hot.items()},
        "local_memory": {name: count(lambda each: each["local_in_loops"], group) for name, group in hot.items()},
        "narrow": narrow(kernels) | ({"copies": count(lambda each: not (each["loads_wide"] and each["stores_wide"]), moves)} if moves else {}),
        "few_loads": {name: count(few_loads, families[name]) for name in ("reduce",) if name in families},
        "no_matrix_unit": {name: count(no_matrix_unit, group) for name, group in halves.items() if group},
        "division": {name: count(divides, group) for name, group in sorted(families.items())},
    }  # fmt: skip


def measured(library):
    """What sass.read says, and the package's size; kept in the build's folder while library and reader stay the same."""
    content = library.read_bytes()
    key = hashlib.sha256(content + (HERE / "sass.py").read_bytes()).hexdigest()
    kept = TREE / "machine_code.json"
    if kept.exists() and (found := json.loads(kept.read_text()))["key"] == key:
        return found
    functions, compiler, sizes = sass.read(library)
    packed = len(zlib.compress(content, 6))
    found = {"key": key, "functions": functions, "compiler": compiler, "sizes": sizes, "packed": packed}
    if TREE.is_dir():
        kept.write_text(json.dumps(found))
    return found


def all_figures(found):
    """{architecture: its figures}; the package's size stands at "package"."""
    result = {}
    for arch in found["sizes"]:
        result[arch] = figures([each for each in found["functions"] if each["arch"] == arch])
    several = len(found["sizes"]) > 1
    result["package"] = {
        "megabytes": {"several" if several else "one": (round(found["packed"] / 1e6, 1), ALL if several else ONE)}
    }
    return result


def goal(measure, total):
    return total if measure == "megabytes" else 0


def compared(result, table, compiler):
    """What is wrong, as lines; and what no gate looked at."""
    wrong, unseen = [], []
    same = compiler == table.get("compiler")
    for arch, measures in result.items():
        if arch not in table:
            unseen.append(f"{arch}: no gates stand in {TABLE.name}")
            continue
        for measure, groups in measures.items():
            gates = table[arch].get(measure, {})
            for name, (figure, total) in groups.items():
                what = f"{arch}: {measure}: {name}: {figure}"
                wanted = goal(measure, total)
                if name not in gates:
                    wrong.append(f"{what}, and the table says nothing; --write puts it in ({MEASURES[measure]})")
                elif gates[name] <= wanted:
                    if figure > wanted:
                        wrong.append(f"{what}, at most {wanted} was reached before ({MEASURES[measure]})")
                elif not same:
                    unseen.append(
                        f"{what}: not reached; the table is of compiler {table.get('compiler')}, this of {compiler}"
                    )
                elif figure > gates[name]:
                    wrong.append(f"{what}, it was {gates[name]} before ({MEASURES[measure]})")
                elif figure < gates[name]:
                    wrong.append(f"{what}, better than the table's {gates[name]}: write it down with --write")
            wrong += [
                f"{arch}: {measure}: {name} is gone; --write takes it out" for name in gates if name not in groups
            ]
    return wrong, unseen


def written(result, compiler):
    """The table as text."""
    lines = [
        "# tests/lint/machine_code.toml: gates of the plugin cuda by its machine code, written by machine_code.py --write.",
        "# A figure counts kernels that are not as wanted; \"not reached\" says of how many, and may only become less.",
        "",
        f'compiler = "{compiler}"',
    ]  # fmt: skip
    for arch, measures in result.items():
        for measure, groups in measures.items():
            lines += ["", f"[{arch}.{measure}]  # {MEASURES[measure]}"]
            for name, (figure, total) in sorted(groups.items()):
                open_ = f"  # not reached: of {total}" if measure != "megabytes" and figure else ""
                open_ = f"  # not reached: {total}" if measure == "megabytes" and figure > total else open_
                lines.append(f"{name} = {figure}{open_}")
    return "\n".join(lines) + "\n"


def printed(found, result):
    """The table for people."""
    for arch, bytes_ in found["sizes"].items():
        kernels = [each for each in found["functions"] if each["arch"] == arch and each["kernel"]]
        print(f"{arch}: {len(kernels)} kernels, {bytes_ / 1e6:.1f} MB of machine code, compiler {found['compiler']}")
        print(
            f"{'family':16}{'kernels':>8}{'registers':>14}{'stack, bytes':>14}{'shared, bytes':>14}{'instructions':>14}"
        )
        for name in sorted({family(each) for each in kernels}):
            group = [each for each in kernels if family(each) == name]
            most = {key: max(each[key] for each in group) for key in ("registers", "stack", "shared")}
            middle = {
                key: sorted(each[key] for each in group)[len(group) // 2] for key in ("registers", "instructions")
            }
            registers = f"{middle['registers']} to {most['registers']}"
            print(
                f"{name:16}{len(group):8}{registers:>14}{most['stack']:14}{most['shared']:14}{middle['instructions']:14}"
            )
    for arch, measures in result.items():
        for measure, groups in measures.items():
            print(f"\n{arch}: {measure}: {MEASURES[measure]}")
            for name, (figure, total) in sorted(groups.items()):
                reached = figure <= goal(measure, total)
                print(f"  {name:16}{figure:>6} of {total:<6}{'reached' if reached else 'not reached'}")
    if seconds := compile_seconds():
        print(f"\ncompile: {seconds:.0f} s of one core, the longest that the build saw of each source")


def compile_seconds():
    log = TREE / ".ninja_log"
    most = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        fields = line.split("\t")
        if len(fields) > 3 and re.search(r"plugins/cuda/cuda_\w+\.o$", fields[3]):
            most[fields[3]] = max(most.get(fields[3], 0), int(fields[1]) - int(fields[0]))
    return sum(most.values()) / 1000


def main(words):
    options = {word for word in words if word.startswith("--")}
    if options - {"--quiet", "--write"}:
        print(__doc__)
        return 2
    named = [word for word in words if word not in options]
    library = pathlib.Path(named[0] if named else TREE / "plugins/libaj_cuda.so")
    if not library.exists() or b".nv_fatbin" not in library.read_bytes():
        print(f"NOT TESTED: machine code: {library} is not built with kernels")
        return 0
    missing = [name for name in ("cuobjdump", "nvdisasm") if not sass.tool(name)]
    if missing:
        print(
            f"NOT TESTED: machine code: {' and '.join(missing)} not found; the CUDA toolkit or the Python packages "
            "nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm bring them (ADJOIN_CUDA_TOOLS names their folder)"
        )
        return 0
    found = measured(library)
    result = all_figures(found)
    if "--write" in options:
        TABLE.write_text(written(result, found["compiler"]))
    if "--quiet" not in options:
        printed(found, result)
    wrong, unseen = compared(result, tomllib.loads(TABLE.read_text()), found["compiler"])
    for line in unseen:
        print(f"NOT TESTED: machine code: {line}")
    for line in wrong:
        print(f"machine code: {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
