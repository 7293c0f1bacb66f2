"""Words the small world is made of: invented brands, nouns by category, options and attributes. No real brand, no person."""

from typing import NamedTuple

BRANDS = tuple(
    "aldomark avenza bertrona bexley briskano calvero cintara corvani dalmera dexalto drelvo duvanti elmora estrada "
    "fenwick filano folkara gaventa glisera grentix halvora hexaro indaro ivoren jantika jostera kaldura kestova "
    "kumira lantero larvik lomenda lumerica marvado mexora mirvane nolvera norbita ondarix orvella palvano pexina "
    "portiva quendal quilora ravendo rexima rolvane sabrento selvika sintara solvenza tamaro telvira tovanda ulmeza "
    "umbrano vandora vexalia vilmera voltani westrano wilmora xandera xelvano yarvika yolmera zandiva zelmora zorvani "
    "brenolo cardexa dromeva evantis fortala gildano herova jerosta kolvadi lendrix".split()
)


class Kind(NamedTuple):
    """A kind of product: where it is sold and which two attributes of one value domain can be told apart."""

    category: str
    noun: str
    styles: tuple[str, ...]
    parts: tuple[str, str]
    """Two attribute keys that take values of the same domain, so a swap leaves the bag of words unchanged."""
    values: tuple[str, ...]
    sizes: tuple[str, ...]
    price: int
    """Typical price in PHP."""


_MATERIALS = {
    "soft": ("cotton", "linen", "polyester", "fleece", "nylon", "wool", "suede", "velvet"),
    "hard": ("steel", "bamboo", "acrylic", "ceramic", "aluminum", "walnut", "brass", "silicone"),
    "taste": ("vanilla", "mango", "lemon", "ginger", "cocoa", "coconut", "peppermint", "honey"),
}
_SIZES = {
    "letters": ("s", "m", "l", "xl", "xxl"),
    "litres": ("1l", "2l", "5l", "8l", "12l"),
    "lengths": ("30cm", "45cm", "60cm", "90cm", "120cm"),
    "packs": ("3pcs", "6pcs", "10pcs", "24pcs"),
    "shoes": ("eu:36", "eu:38", "eu:40", "eu:42", "eu:44"),
}
_TABLE = """
Fashion > Clothing|shell_material,lining_material|soft|letters|640|jacket;hoodie;windbreaker;raincoat;cardigan|quilted zip,oversized fit,packable hood,street vintage,slim winter
Fashion > Bags|outer_material,strap_material|soft|litres|520|backpack;tote;waist bag;duffel;pouch|commuter laptop,travel expandable,school roomy,gym waterproof,crossbody mini
Fashion > Shoes|upper_material,insole_material|soft|shoes|980|sneakers;sandals;loafers;slippers;boots|running cushioned,casual lowcut,trail grippy,office classic,indoor soft
Home > Kitchen|body_material,handle_material|hard|litres|450|kettle;saucepan;pitcher;stockpot;colander|stovetop whistling,nonstick deep,heatproof tall,stackable family,camping compact
Home > Furniture|frame_material,top_material|hard|lengths|1650|shelf;side table;bench;stool;desk|folding narrow,floating corner,rustic farmhouse,balcony outdoor,gaming adjustable
Home > Decor|base_material,shade_material|hard|lengths|390|lamp;vase;wall clock;mirror;candle holder|minimalist bedside,nordic hanging,retro arched,dimmable warm,mosaic turkish
Home > Bedding|face_material,back_material|soft|letters|720|blanket;pillowcase;duvet;throw;mattress topper|breathable cooling,hotel plush,weighted calming,hypoallergenic washable,printed reversible
Sports > Fitness|core_material,grip_material|hard|lengths|560|dumbbell;foam roller;skipping rope;yoga block;resistance bar|adjustable heavy,textured massage,speed tangle-free,pilates studio,doorway portable
Sports > Camping|pole_material,peg_material|hard|lengths|1900|tent;canopy;hammock frame;tripod;cot|waterproof instant,ultralight hiking,beach shade,tactical stealth,two person
Pets > Supplies|bowl_material,stand_material|hard|litres|330|pet feeder;litter box;water fountain;kennel;scratcher|automatic timed,covered odorless,silent filtered,elevated airy,climbing tall
Beauty > Care|scent,undertone|taste|packs|280|shampoo;body wash;lip balm;hand cream;face mask|sulfate-free daily,exfoliating gentle,tinted moisturizing,overnight repairing,brightening sheet
Groceries > Snacks|flavor,filling|taste|packs|160|biscuits;granola;tea;chocolate bar;pancake mix|crunchy baked,organic toasted,loose-leaf herbal,sugarfree dark,wholegrain fluffy
Electronics > Audio|shell_material,cushion_material|soft|lengths|1250|headphones;speaker;soundbar;microphone;earbuds|wireless noise-cancelling,portable bass,surround wallmount,studio condenser,sports clip-on
Tools > Hardware|blade_material,grip_material|hard|lengths|470|hand saw;pliers;screwdriver set;hammer;tape measure|pruning curved,insulated long-nose,magnetic precision,shockproof claw,retractable locking
Garden > Outdoor|pot_material,tray_material|hard|litres|310|planter;watering can;bird feeder;compost bin;trellis|self-watering hanging,longspout indoor,squirrelproof window,rotating sealed,climbing vine
Stationery > Office|cover_material,binding_material|soft|packs|190|notebook;pencil case;organizer;planner;sketchbook|dotted hardbound,stand-up canvas,drawer modular,weekly undated,spiral watercolor
"""

COLORS = ("black", "white", "red", "navy", "olive", "beige", "maroon", "teal", "grey", "mustard", "lilac", "copper")
SERVICES = ("official", "freeShipping", "COD", "flashsale")
SERVICE_WORDS = {
    "official": "LazMall authenticity and fast returns",
    "freeShipping": "free shipping",
    "COD": "cash on delivery",
    "flashsale": "a LazFlash deal",
}


def _kinds() -> tuple[Kind, ...]:
    kinds = []
    for line in _TABLE.strip().splitlines():
        category, parts, domain, sizes, price, nouns, styles = line.split("|")
        first, second = parts.split(",")
        for noun in nouns.split(";"):
            words = tuple(styles.split(","))
            kinds.append(Kind(category, noun, words, (first, second), _MATERIALS[domain], _SIZES[sizes], int(price)))
    return tuple(kinds)


KINDS = _kinds()
